// RUN: tressel-opt %s --tressel-resolve-devices --tressel-machine=sim:2gpu-pcie3 -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-pipeline --tressel-stop-after=resolve-devices --tressel-machine=sim:2gpu-pcie3 -split-input-file | FileCheck %s

// What reads a moved value follows it, and so does what reads that, through views; an annotation is stronger; moved values that
// disagree leave the choice to the compiler. Moves are gone.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %0 = tressel.exp %arg0 {tressel.device = "gpu0"}
// CHECK-NEXT: %1 = tressel.reshape %0 {shape = array<i64: 4>}
// CHECK-NEXT: %2 = tressel.sin %1 {tressel.device = "gpu0"}
// CHECK-NEXT: %3 = tressel.exp %arg0 :
// CHECK-NEXT: %4 = tressel.cos %2 {tressel.device = "gpu1"}
// CHECK-NEXT: %5 = tressel.add %2, %1 {tressel.device = "cpu"}
// CHECK-NEXT: %6 = tressel.add %5, %4 :
// CHECK-NEXT: return %6
func.func @main(%x: tensor<2x2xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  %m = tressel.to %x {device = "gpu0"} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = tressel.exp %m : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = tressel.reshape %0 {shape = array<i64: 4>} : (tensor<2x2xf32>) -> tensor<4xf32>
  %2 = tressel.sin %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = tressel.exp %x : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %4 = tressel.cos %2 {tressel.device = "gpu1"} : (tensor<4xf32>) -> tensor<4xf32>
  %n = tressel.to %4 {device = "gpu1"} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = tressel.add %2, %1 {tressel.device = "cpu"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %k = tressel.to %5 {device = "cpu"} : (tensor<4xf32>) -> tensor<4xf32>
  %6 = tressel.add %k, %n : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %6 : tensor<4xf32>
}

// -----

// A loop is computed as a whole where it is annotated, or where what it reads was moved to.
// CHECK-LABEL: func.func @main
// CHECK: tressel.scan 3
// CHECK-SAME: attributes {tressel.device = "gpu1"}
// CHECK: tressel.add {{.*}} {tressel.device = "gpu1"}
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  %m = tressel.to %x {device = "gpu1"} : (tensor<4xf32>) -> tensor<4xf32>
  %r = tressel.scan 3 carries(%m : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>):
    %0 = tressel.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
