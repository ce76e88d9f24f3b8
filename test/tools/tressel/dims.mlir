// Dimensions that stay dynamic: one package for all sizes.
// RUN: tressel compile %s -o %t.tsl
// RUN: tressel inspect %t.tsl | FileCheck %s --check-prefix=INSPECT
// INSPECT: x: f32[n, 3]
// INSPECT: y: f32[n, 3]
// INSPECT: cpu level {{.*}}, {{[0-9.]+}} {{bytes|KB}} of scratch memory
// RUN: tressel inspect --json %t.tsl | python3 -c "import json, sys; assert json.load(sys.stdin)['needs']['arena_bytes'] >= 0"
// RUN: tressel run %t.tsl --random-inputs 1 --dim n=5 | FileCheck %s --check-prefix=FIVE
// RUN: tressel run %s --random-inputs 1 --dim n=5 | FileCheck %s --check-prefix=FIVE
// FIVE: y: f32[5, 3]
// RUN: tressel run %t.tsl --random-inputs 1 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: note: dimension 'n' is not given: taken as 1
// ONE: y: f32[1, 3]
// RUN: sh -c 'tressel run %t.tsl --random-inputs 1 --dim n=65; test $? = 1' 2>&1 | FileCheck %s --check-prefix=BOUNDS
// BOUNDS: dimension 'n' of 'main' is 65, but lies between 1 and 64
// RUN: sh -c 'tressel compile %s --dim n=5 -o %t.no.tsl; test $? = 1' 2>&1 | FileCheck %s --check-prefix=FIXED
// FIXED: --dim n: the dimensions of an .mlir file are what its types say
// RUN: sh -c 'tressel compile %s --dim n=1..99999999999 -o %t.no.tsl; test $? = 2' 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: no dimension is larger than 2147483647
// RUN: sh -c 'tressel run %t.tsl --random-inputs 1 --dim m=2; test $? = 1' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: no dimension 'm'
func.func @main(%x: tensor<?x3xf32, #tressel.dims<"n[1..64]", 3>> {tressel.name = "x"})
    -> (tensor<?x3xf32, #tressel.dims<"n[1..64]", 3>> {tressel.name = "y"}) {
  %0 = tressel.softmax %x : (tensor<?x3xf32, #tressel.dims<"n[1..64]", 3>>) -> tensor<?x3xf32, #tressel.dims<"n[1..64]", 3>>
  return %0 : tensor<?x3xf32, #tressel.dims<"n[1..64]", 3>>
}
