// A call of a library over symbolic sizes: they stand as text, and the launch's scalars are the values of the symbols, in the order of "symbols".
// RUN: tressel compile %s --device cuda --gpu sm_90 --allow-library -o %t.tsl
// RUN: strings -n 60 %t.tsl | FileCheck %s

// CHECK: "scalars":1,"symbols":["rows[1..4096]"],{{.*}}"library":{{.*}}"m":"rows[1..4096]","n":384,"name":"cublaslt"
func.func @main(%x: tensor<?x512xbf16, #tressel.dims<"rows[1..4096]", 512>>, %w: tensor<512x384xbf16>) -> tensor<?x384xbf16, #tressel.dims<"rows[1..4096]", 384>> {
  %0 = tressel.matmul %x, %w : (tensor<?x512xbf16, #tressel.dims<"rows[1..4096]", 512>>, tensor<512x384xbf16>) -> tensor<?x384xbf16, #tressel.dims<"rows[1..4096]", 384>>
  return %0 : tensor<?x384xbf16, #tressel.dims<"rows[1..4096]", 384>>
}
