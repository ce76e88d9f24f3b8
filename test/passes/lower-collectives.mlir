// RUN: tressel-opt %s --tressel-lower-collectives --tressel-machine=sim:4gpu-pcie3 -split-input-file | FileCheck %s

// Two ranks: each reads the other's.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]]:2 = tressel.collect %[[G:.*]] over ["data"] on_ranks : tensor<1024xf32> -> tensor<1024xf32>, tensor<1024xf32>
// CHECK: tressel.add %[[P]]#0, %[[P]]#1 {tressel.device = "ranks"}
func.func @main(%x: tensor<1024xf32> {tressel.name = "x"}) -> (tensor<1024xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=2"} {
  %0 = tressel.deal %x over [] : (tensor<1024xf32>) -> tensor<1024xf32>
  %1 = tressel.all_reduce %0 by "sum" over ["data"] {tressel.device = "ranks"} : tensor<1024xf32>
  %2 = tressel.collect %1 over [] : tensor<1024xf32> -> tensor<1024xf32>
  return %2 : tensor<1024xf32>
}

// -----

// Four, and much: each combines a quarter, of which the others have the result.
// CHECK-LABEL: func.func @main
// CHECK: %[[B:.*]] = tressel.slice %{{.*}} {limits = array<i64: 262144>, starts = array<i64: 0>, tressel.device = "ranks"}
// CHECK: tressel.collect %[[B]] over ["data"] on_ranks
// CHECK: %[[OWN:.*]] = tressel.deal {{.*}} over ["data"] : ({{.*}}) -> tensor<262144xf32>
// CHECK: tressel.maximum
// CHECK: %[[R:.*]]:4 = tressel.collect %{{.*}} over ["data"] on_ranks : tensor<262144xf32>
// CHECK: tressel.concat %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3 {tressel.device = "ranks"}
// CHECK: tressel.reshape {{.*}} -> tensor<1024x1024xf32>
func.func @main(%x: tensor<1024x1024xf32> {tressel.name = "x"}) -> (tensor<1024x1024xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=4"} {
  %0 = tressel.deal %x over [] : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %1 = tressel.all_reduce %0 by "max" over ["data"] {tressel.device = "ranks"} : tensor<1024x1024xf32>
  %2 = tressel.collect %1 over [] : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  return %2 : tensor<1024x1024xf32>
}

// -----

// Little: a second latency would cost more.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tressel.slice
// CHECK: tressel.collect %{{.*}} over ["data"] on_ranks : tensor<64xf32>
func.func @main(%x: tensor<64xf32> {tressel.name = "x"}) -> (tensor<64xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=4"} {
  %0 = tressel.deal %x over [] : (tensor<64xf32>) -> tensor<64xf32>
  %1 = tressel.all_reduce %0 by "sum" over ["data"] {tressel.device = "ranks"} : tensor<64xf32>
  %2 = tressel.collect %1 over [] : tensor<64xf32> -> tensor<64xf32>
  return %2 : tensor<64xf32>
}
