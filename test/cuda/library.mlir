// With --allow-library NVIDIA's libraries bid too. The call is described for who runs it, with what the library computes behind the product; the generated
// kernel stands beside. What the library cannot compute is a kernel of Tressel's.
// RUN: tressel compile %s --device cuda --gpu sm_90 --allow-library --disable-pass split-producers -o %t.tsl
// RUN: strings -n 200 %t.tsl | FileCheck %s
// RUN: tressel compile %s --device cuda --gpu sm_90 --allow-library --disable-pass split-producers --emit schedule | FileCheck %s --check-prefix=SCHEDULE
// RUN: tressel compile %s --device cuda --gpu sm_90 --emit schedule | FileCheck %s --check-prefix=OWN

// CHECK: "library":{"alpha":1,"batch":1,"bias":2,"k":2048,"left":{"buffer":0,"strides":[0,2048,1]},"m":2048,"n":2048,"name":"cublaslt","relu":true,"result":3,"right":{"buffer":1,"strides":[0,2048,1]},"type":"bf16"}
// SCHEDULE-DAG: tressel.kernel @matmul_add_relu_0{{.*}}provider = "cublaslt"
// SCHEDULE-DAG: tressel.kernel @{{.*}}sin{{.*}}provider = "cuda
// OWN-NOT: cublaslt
func.func @main(%x: tensor<2048x2048xbf16>, %w: tensor<2048x2048xbf16>, %b: tensor<2048xbf16>) -> (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) {
  %0 = tressel.matmul %x, %w : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
  %1 = tressel.add %0, %b : (tensor<2048x2048xbf16>, tensor<2048xbf16>) -> tensor<2048x2048xbf16>
  %2 = tressel.relu %1 : (tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
  %3 = tressel.matmul %w, %x : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
  %4 = tressel.sin %3 : (tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
  return %2, %4 : tensor<2048x2048xbf16>, tensor<2048x2048xbf16>
}
