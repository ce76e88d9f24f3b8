// Loops over a dimension that may be empty: the parts that the inner one writes move by nothing, and are never touched.
// RUN: tressel run -q %s --dim m=0 --random-inputs 1 | FileCheck %s --check-prefix=EMPTY
// RUN: tressel run -q %s --dim m=3 --random-inputs 1 | FileCheck %s
// EMPTY: y0: i8[2, 0]
// CHECK: y0: i8[2, 3]
!x = tensor<1x?xi64, #tressel.dims<1, "m[0..86]">>
!y = tensor<2x?xi8, #tressel.dims<2, "m[0..86]">>
func.func @main(%arg0: !x {tressel.name = "x0"}, %arg1: tensor<i8> {tressel.name = "x1"}, %arg2: !x {tressel.name = "x2"}) -> (!y {tressel.name = "y0"}) {
  %0:2 = tressel.scan 2 carries(%arg0 : !x) with(%arg1, %arg2 : tensor<i8>, !x) -> !x, !y {
  ^bb0(%arg3: tensor<i64>, %arg4: !x, %arg5: tensor<i8>, %arg6: !x):
    %1:2 = tressel.scan "m[0..86]" carries(%arg4 : !x) with(%arg5, %arg6 : tensor<i8>, !x) -> !x, tensor<?xi8, #tressel.dims<"m[0..86]">> {
    ^bb0(%arg7: tensor<i64>, %arg8: !x, %arg9: tensor<i8>, %arg10: !x):
      tressel.yield %arg10, %arg9 : !x, tensor<i8>
    }
    tressel.yield %1#0, %1#1 : !x, tensor<?xi8, #tressel.dims<"m[0..86]">>
  }
  return %0#1 : !y
}
