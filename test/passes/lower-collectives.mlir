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

// Little: each rank has a copy to the host, and one back, where three to the others would take longer.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]]:4 = tressel.collect %{{.*}} over ["data"] : tensor<64xf32>
// CHECK: tressel.add %[[P]]#0, %[[P]]#1 {tressel.device = "cpu"}
// CHECK: %[[LAST:.*]] = tressel.add %[[P]]#2, %[[P]]#3 {tressel.device = "cpu"}
// CHECK: %[[S:.*]] = tressel.add %{{.*}}, %[[LAST]] {tressel.device = "cpu"}
// CHECK: tressel.deal %[[S]] over []
func.func @main(%x: tensor<64xf32> {tressel.name = "x"}) -> (tensor<64xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=4"} {
  %0 = tressel.deal %x over [] : (tensor<64xf32>) -> tensor<64xf32>
  %1 = tressel.all_reduce %0 by "sum" over ["data"] {tressel.device = "ranks"} : tensor<64xf32>
  %2 = tressel.collect %1 over [] : tensor<64xf32> -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// Two gradients that are used at the end are one collective, whose parts are views; the sum that the second one waits for is none of it.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]]:2 = tressel.collect %{{.*}} over ["data"] on_ranks : tensor<f32>
// CHECK: %[[A:.*]] = tressel.add %[[S]]#0, %[[S]]#1
// CHECK: %[[G:.*]] = tressel.mul %{{.*}}, %[[A]]
// CHECK: %[[ALL:.*]] = tressel.concat %{{.*}}, %{{.*}} {tressel.device = "ranks"} : (tensor<1024xf32>, tensor<256xf32>) -> tensor<1280xf32>
// CHECK: tressel.collect %[[ALL]] over ["data"] on_ranks
// CHECK: tressel.slice %{{.*}} {limits = array<i64: 1024>, starts = array<i64: 0>, tressel.as_view, tressel.device = "ranks"}
// CHECK: tressel.slice %{{.*}} {limits = array<i64: 1280>, starts = array<i64: 1024>, tressel.as_view, tressel.device = "ranks"}
// CHECK: tressel.exp
func.func @main(%x: tensor<16x64xf32> {tressel.name = "x"}, %y: tensor<256xf32> {tressel.name = "y"})
    -> (tensor<16x64xf32> {tressel.name = "u"}, tensor<256xf32> {tressel.name = "v"}) attributes {tressel.mesh = "data=2"} {
  %0 = tressel.deal %x over [] : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %1 = tressel.deal %y over [] : (tensor<256xf32>) -> tensor<256xf32>
  %2 = tressel.all_reduce %0 by "sum" over ["data"] {tressel.device = "ranks"} : tensor<16x64xf32>
  %3 = tressel.sum %1 {tressel.device = "ranks"} : (tensor<256xf32>) -> tensor<f32>
  %4 = tressel.all_reduce %3 by "sum" over ["data"] {tressel.device = "ranks"} : tensor<f32>
  %5 = tressel.mul %1, %4 {tressel.device = "ranks"} : (tensor<256xf32>, tensor<f32>) -> tensor<256xf32>
  %6 = tressel.all_reduce %5 by "sum" over ["data"] {tressel.device = "ranks"} : tensor<256xf32>
  %7 = tressel.exp %2 {tressel.device = "ranks"} : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %8 = tressel.collect %7 over [] : tensor<16x64xf32> -> tensor<16x64xf32>
  %9 = tressel.collect %6 over [] : tensor<256xf32> -> tensor<256xf32>
  return %8, %9 : tensor<16x64xf32>, tensor<256xf32>
}
