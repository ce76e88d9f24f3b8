// Attention that a library computes: heads that share keys, a mask that is the same for all heads, sizes that are symbolic, its generated kernel beside it. Masks of bools, sizes of
// heads that are no multiples of 8 and f32 are Tressel's own.
// RUN: tressel compile %s --device cuda --gpu sm_90 --allow-library -o %t.tsl
// RUN: strings -n 200 %t.tsl | FileCheck %s
// RUN: tressel compile %s --device cuda --gpu sm_90 --allow-library --emit schedule | FileCheck %s --check-prefix=SCHEDULE
// RUN: tressel compile %s --device cuda --gpu sm_90 --emit schedule | FileCheck %s --check-prefix=OWN

// CHECK-DAG: "library":{"batch":"texts[1..64]","causal":true,"groups":2,"heads":8,"k":1,"keys":256,"mask":{"buffer":3,"by_batch":true,"by_head":false,"by_query":true},"name":"cudnn.attention","q":0,"queries":128,"result":4,"scale":0.125,"size":64,"type":"bf16","v":2,"width":128}
// CHECK-DAG: "library":{"batch":1,"causal":false,"groups":16,"heads":16,"k":0,"keys":512,"name":"cudnn.attention","q":0,"queries":512,"result":1,"scale":0.5,"size":64,"type":"f16","v":0,"width":64}
// SCHEDULE-COUNT-2: tressel.kernel @scaled_dot_product_attention{{.*}}provider = "cudnn"
// SCHEDULE-NOT: provider = "cudnn"
// OWN-NOT: cudnn
func.func @main(%q: tensor<?x8x128x64xbf16, #tressel.dims<"texts[1..64]", 8, 128, 64>>, %k: tensor<?x2x256x64xbf16, #tressel.dims<"texts[1..64]", 2, 256, 64>>, %v: tensor<?x2x256x128xbf16, #tressel.dims<"texts[1..64]", 2, 256, 128>>, %m: tensor<?x1x128x256xbf16, #tressel.dims<"texts[1..64]", 1, 128, 256>>,
                %a: tensor<16x512x64xf16>, %hides: tensor<512x512xi1>, %odd: tensor<16x512x60xf16>, %wide: tensor<16x512x64xf32>)
    -> (tensor<?x8x128x128xbf16, #tressel.dims<"texts[1..64]", 8, 128, 128>>, tensor<16x512x64xf16>, tensor<16x512x64xf16>, tensor<16x512x60xf16>, tensor<16x512x64xf32>) {
  %0 = tressel.scaled_dot_product_attention %q, %k, %v, %m {causal = true} : (tensor<?x8x128x64xbf16, #tressel.dims<"texts[1..64]", 8, 128, 64>>, tensor<?x2x256x64xbf16, #tressel.dims<"texts[1..64]", 2, 256, 64>>, tensor<?x2x256x128xbf16, #tressel.dims<"texts[1..64]", 2, 256, 128>>, tensor<?x1x128x256xbf16, #tressel.dims<"texts[1..64]", 1, 128, 256>>) -> tensor<?x8x128x128xbf16, #tressel.dims<"texts[1..64]", 8, 128, 128>>
  %1 = tressel.scaled_dot_product_attention %a, %a, %a {scale = 5.000000e-01 : f64} : (tensor<16x512x64xf16>, tensor<16x512x64xf16>, tensor<16x512x64xf16>) -> tensor<16x512x64xf16>
  %2 = tressel.scaled_dot_product_attention %a, %a, %a, %hides : (tensor<16x512x64xf16>, tensor<16x512x64xf16>, tensor<16x512x64xf16>, tensor<512x512xi1>) -> tensor<16x512x64xf16>
  %3 = tressel.scaled_dot_product_attention %odd, %odd, %odd : (tensor<16x512x60xf16>, tensor<16x512x60xf16>, tensor<16x512x60xf16>) -> tensor<16x512x60xf16>
  %4 = tressel.scaled_dot_product_attention %wide, %wide, %wide : (tensor<16x512x64xf32>, tensor<16x512x64xf32>, tensor<16x512x64xf32>) -> tensor<16x512x64xf32>
  return %0, %1, %2, %3, %4 : tensor<?x8x128x128xbf16, #tressel.dims<"texts[1..64]", 8, 128, 128>>, tensor<16x512x64xf16>, tensor<16x512x64xf16>, tensor<16x512x60xf16>, tensor<16x512x64xf32>
}
