// RUN: tressel-opt %s --tressel-simplify --split-input-file | FileCheck %s

// A loop that counts up to a known number is a scan. What counted is gone where nothing else reads it.
// CHECK-LABEL: @main
// CHECK: tressel.scan 17 carries(%arg0 : tensor<4xf32>)
// CHECK-NOT: tressel.less
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  %zero = tressel.constant dense<0> : tensor<i32>
  %i, %r = tressel.while carries(%zero, %x : tensor<i32>, tensor<4xf32>) -> tensor<i32>, tensor<4xf32> {
  ^bb0(%a: tensor<i32>, %b: tensor<4xf32>):
    %n = tressel.constant dense<50> : tensor<i32>
    %c = tressel.less %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tressel.yield %c : tensor<i1>
  } do {
  ^bb0(%a: tensor<i32>, %b: tensor<4xf32>):
    %three = tressel.constant dense<3> : tensor<i32>
    %next = tressel.add %a, %three : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %e = tressel.exp %b : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %next, %e : tensor<i32>, tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// The counter may be read, and the limit stand on the left.
// CHECK-LABEL: @main
// CHECK: tressel.scan 6 carries(%{{.*}}, %arg0 : tensor<i64>, tensor<f32>)
func.func @main(%x: tensor<f32> {tressel.name = "x"}) -> (tensor<i64> {tressel.name = "i"}, tensor<f32> {tressel.name = "y"}) {
  %zero = tressel.constant dense<0> : tensor<i64>
  %i, %r = tressel.while carries(%zero, %x : tensor<i64>, tensor<f32>) -> tensor<i64>, tensor<f32> {
  ^bb0(%a: tensor<i64>, %b: tensor<f32>):
    %n = tressel.constant dense<5> : tensor<i64>
    %c = tressel.greater_equal %n, %a : (tensor<i64>, tensor<i64>) -> tensor<i1>
    tressel.yield %c : tensor<i1>
  } do {
  ^bb0(%a: tensor<i64>, %b: tensor<f32>):
    %one = tressel.constant dense<1> : tensor<i64>
    %next = tressel.add %one, %a : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %e = tressel.exp %b : (tensor<f32>) -> tensor<f32>
    tressel.yield %next, %e : tensor<i64>, tensor<f32>
  }
  return %i, %r : tensor<i64>, tensor<f32>
}

// -----

// A limit that is computed, or a counter near the end of its type, is no known number.
// CHECK-LABEL: @main
// CHECK: tressel.while
// CHECK: tressel.while
func.func @main(%x: tensor<i32> {tressel.name = "x"}) -> (tensor<i32> {tressel.name = "i"}, tensor<i8> {tressel.name = "j"}) {
  %zero = tressel.constant dense<0> : tensor<i32>
  %i = tressel.while carries(%zero : tensor<i32>) with(%x : tensor<i32>) -> tensor<i32> {
  ^bb0(%a: tensor<i32>, %n: tensor<i32>):
    %c = tressel.less %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tressel.yield %c : tensor<i1>
  } do {
  ^bb0(%a: tensor<i32>, %n: tensor<i32>):
    %one = tressel.constant dense<1> : tensor<i32>
    %next = tressel.add %a, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tressel.yield %next : tensor<i32>
  }
  %small = tressel.constant dense<0> : tensor<i8>
  %j = tressel.while carries(%small : tensor<i8>) -> tensor<i8> {
  ^bb0(%a: tensor<i8>):
    %n = tressel.constant dense<120> : tensor<i8>
    %c = tressel.less %a, %n : (tensor<i8>, tensor<i8>) -> tensor<i1>
    tressel.yield %c : tensor<i1>
  } do {
  ^bb0(%a: tensor<i8>):
    %seven = tressel.constant dense<100> : tensor<i8>
    %next = tressel.add %a, %seven : (tensor<i8>, tensor<i8>) -> tensor<i8>
    tressel.yield %next : tensor<i8>
  }
  return %i, %j : tensor<i32>, tensor<i8>
}
