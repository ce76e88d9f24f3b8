// The graph dialect. Its ops are those of the op table (ir/ops), which one generic model registers (TableOp.cpp), and a few
// with classes of their own: the constant (Constant.td), ops with bodies (Control.td), ops on meshes (Mesh.td), and the
// structure that passes add (Structure.td).
#ifndef TRESSEL_GRAPH_DIALECT
#define TRESSEL_GRAPH_DIALECT

include "mlir/IR/OpBase.td"

def Tressel_Dialect : Dialect {
  let name = "tressel";
  let cppNamespace = "::tressel::graph";
  let summary = "Tensor programs as the user wrote them";
  let description = [{
    Pure ops over ranked tensors of f32, f64, f16, bf16, i8, i16, i32, i64, ui8 and i1. Names and semantics follow NumPy and
    the array API, see docs/ops.md.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// The registered name of an op of the table. Adds an op that was registered after the context was created.
    ::mlir::OperationName nameOf(const ::tressel::op::OpInfo &info) {
      auto it = names.find(&info);
      return it == names.end() ? addOp(info) : it->second;
    }

  private:
    void registerAttributes();
    ::mlir::OperationName addOp(const ::tressel::op::OpInfo &info);
    ::llvm::DenseMap<const ::tressel::op::OpInfo *, ::mlir::OperationName> names;

  public:
  }];
}

#endif
