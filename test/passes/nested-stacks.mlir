// A loop in a loop, whose innermost results are written through two views of the same place: the views move together.
// RUN: tressel compile %s -o %t.tsl
// RUN: tressel run %t.tsl --dim m=1 --random-inputs 3 | FileCheck %s --check-prefix=ONE
// ONE: y0: f32[1, 1, 1]
// RUN: tressel-opt --tressel-pipeline --tressel-verify-each %s -o /dev/null
  func.func @main(%arg0: tensor<?x3x?xf32, #tressel.dims<"m[1..99]", 3, "m[1..99]">> {tressel.name = "x0"}, %arg1: tensor<?xf32, #tressel.dims<"m[1..99]">> {tressel.name = "x1"}, %arg2: tensor<?xf32, #tressel.dims<"m[1..99]">> {tressel.name = "x2"}, %arg3: tensor<i1> {tressel.name = "x3"}) -> (tensor<?x?x?xf32, #tressel.dims<"m[1..99]", "m[1..99]", "m[1..99]">> {tressel.name = "y0"}) {
    %0 = tressel.scan "m[1..99]" with(%arg0, %arg1, %arg2, %arg3 : tensor<?x3x?xf32, #tressel.dims<"m[1..99]", 3, "m[1..99]">>, tensor<?xf32, #tressel.dims<"m[1..99]">>, tensor<?xf32, #tressel.dims<"m[1..99]">>, tensor<i1>) -> tensor<?x?x?xf32, #tressel.dims<"m[1..99]", "m[1..99]", "m[1..99]">> {
    ^bb0(%arg4: tensor<i64>, %arg5: tensor<?x3x?xf32, #tressel.dims<"m[1..99]", 3, "m[1..99]">>, %arg6: tensor<?xf32, #tressel.dims<"m[1..99]">>, %arg7: tensor<?xf32, #tressel.dims<"m[1..99]">>, %arg8: tensor<i1>):
      %1 = tressel.scan "m[1..99]" slices(%arg5 : tensor<?x3x?xf32, #tressel.dims<"m[1..99]", 3, "m[1..99]">>) with(%arg6, %arg7, %arg8 : tensor<?xf32, #tressel.dims<"m[1..99]">>, tensor<?xf32, #tressel.dims<"m[1..99]">>, tensor<i1>) -> tensor<?x?xf32, #tressel.dims<"m[1..99]", "m[1..99]">> {
      ^bb0(%arg9: tensor<i64>, %arg10: tensor<3x?xf32, #tressel.dims<3, "m[1..99]">>, %arg11: tensor<?xf32, #tressel.dims<"m[1..99]">>, %arg12: tensor<?xf32, #tressel.dims<"m[1..99]">>, %arg13: tensor<i1>):
        %2 = tressel.cond %arg13 : tensor<i1> with(%arg10, %arg11, %arg12 : tensor<3x?xf32, #tressel.dims<3, "m[1..99]">>, tensor<?xf32, #tressel.dims<"m[1..99]">>, tensor<?xf32, #tressel.dims<"m[1..99]">>) -> tensor<?xf32, #tressel.dims<"m[1..99]">> {
        ^bb0(%arg14: tensor<3x?xf32, #tressel.dims<3, "m[1..99]">>, %arg15: tensor<?xf32, #tressel.dims<"m[1..99]">>, %arg16: tensor<?xf32, #tressel.dims<"m[1..99]">>):
          tressel.yield %arg15 : tensor<?xf32, #tressel.dims<"m[1..99]">>
        } else {
        ^bb0(%arg14: tensor<3x?xf32, #tressel.dims<3, "m[1..99]">>, %arg15: tensor<?xf32, #tressel.dims<"m[1..99]">>, %arg16: tensor<?xf32, #tressel.dims<"m[1..99]">>):
          %3:3 = tressel.batch_norm_train %arg14, %arg16, %arg16 {epsilon = 3.000000e-01 : f64} : (tensor<3x?xf32, #tressel.dims<3, "m[1..99]">>, tensor<?xf32, #tressel.dims<"m[1..99]">>, tensor<?xf32, #tressel.dims<"m[1..99]">>) -> (tensor<3x?xf32, #tressel.dims<3, "m[1..99]">>, tensor<?xf32, #tressel.dims<"m[1..99]">>, tensor<?xf32, #tressel.dims<"m[1..99]">>)
          tressel.yield %3#1 : tensor<?xf32, #tressel.dims<"m[1..99]">>
        }
        tressel.yield %2 : tensor<?xf32, #tressel.dims<"m[1..99]">>
      }
      tressel.yield %1 : tensor<?x?xf32, #tressel.dims<"m[1..99]", "m[1..99]">>
    }
    return %0 : tensor<?x?x?xf32, #tressel.dims<"m[1..99]", "m[1..99]", "m[1..99]">>
  }
