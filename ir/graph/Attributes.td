// Sizes that are known only when the program runs, in MLIR: expressions of tressel/runtime/Dim.h as attributes. Plain
// numbers keep MLIR's own attributes, so a static program reads as it always did.
#ifndef TRESSEL_GRAPH_ATTRIBUTES
#define TRESSEL_GRAPH_ATTRIBUTES

include "ir/graph/Dialect.td"
include "mlir/IR/AttrTypeBase.td"

def Tressel_SizeAttr : AttrDef<Tressel_Dialect, "Size"> {
  let summary = "one size";
  let description = [{
    `#tressel.size<"4*n + 4">`. A symbol's bounds stand behind its name where they are not the usual ones: `n[1..512]`.
  }];
  let mnemonic = "size";
  let parameters = (ins "int64_t":$value);
  let hasCustomAssemblyFormat = 1;
}

def Tressel_DimsAttr : AttrDef<Tressel_Dialect, "Dims"> {
  let summary = "sizes, one per dimension";
  let description = [{
    `#tressel.dims<"n", 784>`; "?" is a size of which nothing is known. As the encoding of a tensor type it says what the
    dynamic dimensions are: `tensor<?x784xf32, #tressel.dims<"n", 784>>`.
  }];
  let mnemonic = "dims";
  let parameters = (ins ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
}

#endif
