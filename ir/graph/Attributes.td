// Attributes of the graph dialect: targets of kernels, and symbolic sizes (expressions of tressel/runtime/Dim.h). Numeric
// sizes use MLIR's own attributes, so that static programs are easy to read.
#ifndef TRESSEL_GRAPH_ATTRIBUTES
#define TRESSEL_GRAPH_ATTRIBUTES

include "ir/graph/Dialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Tressel_SizeAttr : AttrDef<Tressel_Dialect, "Size"> {
  let summary = "one size";
  let description = [{
    `#tressel.size<"4*n + 4">`. A symbol's bounds follow its name unless they are the default ones: `n[1..512]`.
  }];
  let mnemonic = "size";
  let parameters = (ins "::tressel::Size":$value);
  let hasCustomAssemblyFormat = 1;
}

def Tressel_DimsAttr : AttrDef<Tressel_Dialect, "Dims"> {
  let summary = "sizes, one per dimension";
  let description = [{
    `#tressel.dims<"n", 784>`; "?" is an unknown size. As the encoding of a tensor type it gives the sizes of the
    dynamic dimensions: `tensor<?x784xf32, #tressel.dims<"n", 784>>`.
  }];
  let mnemonic = "dims";
  let parameters = (ins ArrayRefParameter<"::tressel::Size">:$sizes);
  let hasCustomAssemblyFormat = 1;
}

// As runtime::KernelTarget, in its order.
def Tressel_KernelTarget : I32EnumAttr<"KernelTarget", "which devices take a kernel, and where its code is found", [
    I32EnumAttrCase<"Host", 0, "host">, I32EnumAttrCase<"HostLibrary", 1, "host_library">,
    I32EnumAttrCase<"HostFunction", 2, "host_function">, I32EnumAttrCase<"Gpu", 3, "gpu">,
    I32EnumAttrCase<"GpuLibrary", 4, "gpu_library">]> {
  let cppNamespace = "::tressel::graph";
  let genSpecializedAttr = 0;
}
def Tressel_KernelTargetAttr : EnumAttr<Tressel_Dialect, Tressel_KernelTarget, "target"> {
  let assemblyFormat = "`<` $value `>`";
}

#endif
