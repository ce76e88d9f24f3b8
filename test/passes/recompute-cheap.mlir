// RUN: tressel-opt %s -split-input-file --tressel-recompute-cheap="min-bytes=1024" | FileCheck %s
// RUN: tressel-opt %s -split-input-file --tressel-recompute-cheap="min-bytes=1000000" | FileCheck %s --check-prefix=LITTLE

// What exp gives is not kept behind the turning point, as the product that it is made of is kept anyway: each reader there has its own. A program that
// keeps little stays as it is.
// CHECK-LABEL: func.func @main
// CHECK: %[[H1:.*]] = tressel.matmul %arg0, %arg1
// CHECK-NEXT: %[[R1:.*]] = tressel.exp %[[H1]]
// CHECK-NEXT: %[[H2:.*]] = tressel.matmul %[[R1]], %arg2
// CHECK-NEXT: tressel.exp %[[H2]]
// CHECK: %[[AGAIN2:.*]] = tressel.exp %[[H2]]
// CHECK-NEXT: tressel.mul %{{.*}}, %[[AGAIN2]]
// CHECK: %[[AGAIN1:.*]] = tressel.exp %[[H1]]
// CHECK-NEXT: tressel.mul %{{.*}}, %[[AGAIN1]]
// LITTLE-LABEL: func.func @main
// LITTLE-COUNT-4: tressel.exp
// LITTLE-NOT: tressel.exp
func.func @main(%x: tensor<64x64xf32> {tressel.name = "x"}, %w1: tensor<64x64xf32> {tressel.name = "w1"}, %w2: tensor<64x64xf32> {tressel.name = "w2"}, %w3: tensor<64x64xf32> {tressel.name = "w3"}, %w4: tensor<64x64xf32> {tressel.name = "w4"})
    -> (tensor<64x64xf32> {tressel.name = "y"}) {
  %h1 = tressel.matmul %x, %w1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %r1 = tressel.exp %h1 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %h2 = tressel.matmul %r1, %w2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %r2 = tressel.exp %h2 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %h3 = tressel.matmul %r2, %w3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %r3 = tressel.exp %h3 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %h4 = tressel.matmul %r3, %w4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %r4 = tressel.exp %h4 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s4 = tressel.mul %r4, %r4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t4 = tressel.mul %s4, %h4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g4 = tressel.matmul %t4, %w4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s3 = tressel.mul %g4, %r3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t3 = tressel.mul %s3, %h3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g3 = tressel.matmul %t3, %w3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s2 = tressel.mul %g3, %r2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t2 = tressel.mul %s2, %h2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g2 = tressel.matmul %t2, %w2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s1 = tressel.mul %g2, %r1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t1 = tressel.mul %s1, %h1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g1 = tressel.matmul %t1, %w1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %g1 : tensor<64x64xf32>
}

// -----

// What is compared for equality behind the turning point is kept, also where it is moved first: another kernel may round it otherwise, and then it is
// equal to nothing.
// CHECK-LABEL: func.func @main
// CHECK: %[[H1:.*]] = tressel.matmul %arg0, %arg1
// CHECK-NEXT: %[[R1:.*]] = tressel.exp %[[H1]]
// CHECK-NEXT: %[[H2:.*]] = tressel.matmul %[[R1]], %arg2
// CHECK: tressel.exp %[[H2]]
// CHECK: tressel.exp %[[H2]]
// CHECK-NOT: tressel.exp
// CHECK: tressel.transpose %[[R1]]
// LITTLE-LABEL: func.func @main
func.func @main(%x: tensor<64x64xf32> {tressel.name = "x"}, %w1: tensor<64x64xf32> {tressel.name = "w1"}, %w2: tensor<64x64xf32> {tressel.name = "w2"}, %w3: tensor<64x64xf32> {tressel.name = "w3"}, %w4: tensor<64x64xf32> {tressel.name = "w4"})
    -> (tensor<64x64xf32> {tressel.name = "y"}) {
  %h1 = tressel.matmul %x, %w1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %r1 = tressel.exp %h1 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %h2 = tressel.matmul %r1, %w2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %r2 = tressel.exp %h2 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %h3 = tressel.matmul %r2, %w3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %r3 = tressel.exp %h3 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %h4 = tressel.matmul %r3, %w4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %r4 = tressel.exp %h4 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s4 = tressel.mul %r4, %r4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t4 = tressel.mul %s4, %h4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g4 = tressel.matmul %t4, %w4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s3 = tressel.mul %g4, %r3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t3 = tressel.mul %s3, %h3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g3 = tressel.matmul %t3, %w3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s2 = tressel.mul %g3, %r2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t2 = tressel.mul %s2, %h2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g2 = tressel.matmul %t2, %w2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %m1 = tressel.transpose %r1 {permutation = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %b1 = tressel.equal %m1, %g2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xi1>
  %t1 = tressel.where %b1, %g2, %h1 : (tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g1 = tressel.matmul %t1, %w1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %g1 : tensor<64x64xf32>
}
