// Meshes of ranks in the graph, and how tensors are distributed over them. An op that ranks compute has `tressel.device
// = "ranks"`: its values are the rank's own, of the types of its parts. The ops deal and collect convert between these
// and the program's values.
#pragma once

#include "ir/graph/DeviceAttr.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tressel/runtime/Ranks.h"

#define GET_OP_CLASSES
#include "ir/graph/Mesh.h.inc"

namespace tressel::graph {

/// Called by the dialect's initialize().
void registerMeshOps(mlir::Dialect &dialect);

/// On @main: axes and sizes, the last axis varying fastest: "data=2, model=4".
inline constexpr llvm::StringLiteral kMeshAttr = "tressel.mesh";
/// On an argument or result of @main: how it is cut, one word per dimension: "data, -". A word is an axis, several
/// joined by + (the first cuts into the largest parts), or - for a whole dimension. "" leaves all dimensions to
/// propagation.
inline constexpr llvm::StringLiteral kShardingAttr = "tressel.sharding";
/// On @main, from the pass `shard` until ranks are expanded: ops on ranks compute on parts.
inline constexpr llvm::StringLiteral kCutAttr = "tressel.cut";
/// On @main, with a mesh: the ranks along one axis are micro-batches that one accelerator computes one after the other,
/// and stages (Stage.h) are distributed over a row of accelerators: {axis = "micro", size = 4 : i64, order = "1f1b"}.
/// `size`, the number of accelerators in the row, defaults to 1, `order` (PipelineOrder.h) to "best".
inline constexpr llvm::StringLiteral kPipelineAttr = "tressel.pipeline";
/// On @main, once the ranks of a pipeline are expanded: its `order`, or "" if the best is to be chosen.
inline constexpr llvm::StringLiteral kMicroBatchOrderAttr = "tressel.micro_batch_order";
/// On @main, with a mesh: each rank runs a program of its own, on the first accelerator of its machine, whose inputs
/// and results are parts.
inline constexpr llvm::StringLiteral kRankProgramAttr = "tressel.rank_program";
/// On an argument or result on ranks: it lies in the memory of the rank's host, not of its accelerator.
inline constexpr llvm::StringLiteral kOnHostAttr = "tressel.on_host";
/// As kDeviceAttr: every rank computes the op. As kHomeAttr of an argument or result of @main: each rank has its part
/// in its memory, from call to call for a state. After the pass `shard` such an argument has the type of the part, and
/// keeps its kShardingAttr.
inline constexpr llvm::StringLiteral kRanks = "ranks";

inline bool isOnRanks(mlir::Operation *op) {
  auto device = op->getAttrOfType<mlir::StringAttr>(kDeviceAttr);
  return device && device == kRanks;
}
inline void setOnRanks(mlir::Operation *op) {
  op->setAttr(kDeviceAttr, mlir::StringAttr::get(op->getContext(), kRanks));
}

/// Whether it is the op `shard`: its result is the operand, cut as the attribute `axes` says.
bool isShardAnnotation(mlir::Operation *op);

/// Whether it is all_reduce, all_gather or reduce_scatter. These have one operand and one result, and name axes.
bool isCollective(mlir::Operation *op);
mlir::ArrayAttr axesOfCollective(mlir::Operation *op);

/// Whether an argument or result of @main lies in the memory of the ranks.
bool isArgumentOnRanks(mlir::func::FuncOp main, unsigned i);
bool isResultOnRanks(mlir::func::FuncOp main, unsigned i);

/// The name of a rank's part of an argument or result: "0.weight@1".
std::string nameOfPart(llvm::StringRef name, int64_t rank);

struct Mesh {
  std::vector<runtime::MeshAxis> axes;
  std::optional<unsigned> time; ///< the axis whose ranks are micro-batches of one accelerator (kPipelineAttr)
  int64_t inRow = 1;            ///< accelerators in a row of the pipeline, for each rank of the other axes
  bool empty() const { return axes.empty(); }
  bool liesInTime(unsigned axis) const { return time == axis; }
  /// Number of ranks along the axes other than `time`: the accelerators that compute one stage.
  int64_t numPlaces() const { return numRanks() / (time ? sizeOf(*time) : 1); }
  int64_t numAccelerators() const { return inRow * numPlaces(); }
  /// The rank's number among the ranks of its micro-batch; and its micro-batch.
  int64_t placeInSpace(int64_t rank) const;
  int64_t microBatchOf(int64_t rank) const { return time ? placeOf(rank, *time) : 0; }
  /// The accelerator that computes a stage for a rank, by its index in acceleratorsOf.
  int64_t acceleratorOf(int64_t rank, int64_t stage) const { return stage % inRow * numPlaces() + placeInSpace(rank); }
  int64_t sizeOf(unsigned axis) const { return axes[axis].size.number(); }
  int64_t numRanks() const { return runtime::numRanks(axes); }
  /// Number of ranks along some axes.
  int64_t numAlong(llvm::ArrayRef<unsigned> some) const;
  /// The rank's row-major number along some axes.
  int64_t placeOf(int64_t rank, llvm::ArrayRef<unsigned> some) const;
  /// The rank with this number along `some`, and with the coordinates of `like` along the other axes.
  int64_t rankAt(int64_t place, llvm::ArrayRef<unsigned> some, int64_t like) const;
  std::optional<unsigned> find(llvm::StringRef name) const;
  /// "data=2, model=4".
  std::string str() const;
};
/// kPipelineAttr; without `order` the best one is chosen.
mlir::DictionaryAttr pipelineAttr(mlir::MLIRContext *context, llvm::StringRef axis, int64_t inRow,
                                  llvm::StringRef order = "");
/// The mesh of @main; without axes if it has none. An error if the text is invalid.
llvm::FailureOr<Mesh> meshOf(mlir::func::FuncOp main);
/// The axes that an op names in `over`; an error at the op for a name that the mesh lacks.
llvm::FailureOr<llvm::SmallVector<unsigned>> axesOf(mlir::Operation *op, mlir::ArrayAttr over, const Mesh &mesh);
mlir::ArrayAttr namesOf(mlir::MLIRContext *context, llvm::ArrayRef<unsigned> axes, const Mesh &mesh);

/// The axes that cut each dimension.
struct Sharding {
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>> dims;
  bool operator==(const Sharding &) const = default;
  bool isWhole() const;
  bool uses(unsigned axis) const;
  static Sharding whole(int rank) {
    return {llvm::SmallVector<llvm::SmallVector<unsigned, 2>>(static_cast<size_t>(rank))};
  }
  /// "data, -".
  std::string str(const Mesh &mesh) const;
};
/// The sharding, or an error message if the text is invalid for a tensor of this rank.
struct ParsedSharding {
  Sharding sharding;
  std::string error;
};
ParsedSharding parseSharding(llvm::StringRef text, int rank, const Mesh &mesh);

/// The size of a rank's part of a dimension. Parts differ by at most one, the first being the larger ones; if they
/// differ, the size is an expression in the rank's coordinates (runtime::rankSymbol).
Size partOf(Size size, llvm::ArrayRef<unsigned> axes, const Mesh &mesh);
/// The index in the whole at which the part begins.
Size firstOf(Size size, llvm::ArrayRef<unsigned> axes, const Mesh &mesh);
TensorType partOf(const TensorType &whole, const Sharding &sharding, const Mesh &mesh);
/// The values of the coordinates of one rank.
dim::Values coordinatesOf(int64_t rank, const Mesh &mesh);

} // namespace tressel::graph
