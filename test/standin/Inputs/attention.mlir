func.func @main(%q: tensor<2x4x40x16xbf16>, %k: tensor<2x2x24x16xbf16>, %v: tensor<2x2x24x32xbf16>, %m: tensor<4x40x24xbf16>, %a: tensor<?x48x16xf16, #tressel.dims<"heads[1..8]", 48, 16>>) -> (tensor<2x4x40x32xf32>, tensor<?x48x16xf32, #tressel.dims<"heads[1..8]", 48, 16>>) {
  %0 = tressel.scaled_dot_product_attention %q, %k, %v, %m {causal = true} : (tensor<2x4x40x16xbf16>, tensor<2x2x24x16xbf16>, tensor<2x2x24x32xbf16>, tensor<4x40x24xbf16>) -> tensor<2x4x40x32xbf16>
  %1 = tressel.cast %0 {dtype = f32} : (tensor<2x4x40x32xbf16>) -> tensor<2x4x40x32xf32>
  %2 = tressel.scaled_dot_product_attention %a, %a, %a : (tensor<?x48x16xf16, #tressel.dims<"heads[1..8]", 48, 16>>, tensor<?x48x16xf16, #tressel.dims<"heads[1..8]", 48, 16>>, tensor<?x48x16xf16, #tressel.dims<"heads[1..8]", 48, 16>>) -> tensor<?x48x16xf16, #tressel.dims<"heads[1..8]", 48, 16>>
  %3 = tressel.cast %2 {dtype = f32} : (tensor<?x48x16xf16, #tressel.dims<"heads[1..8]", 48, 16>>) -> tensor<?x48x16xf32, #tressel.dims<"heads[1..8]", 48, 16>>
  return %1, %3 : tensor<2x4x40x32xf32>, tensor<?x48x16xf32, #tressel.dims<"heads[1..8]", 48, 16>>
}
