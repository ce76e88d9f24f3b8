// Meshes of ranks in the graph, and how tensors lie on them. What a rank computes carries `tressel.device = "ranks"`:
// its values are the rank's own, of the types of its parts. deal and collect stand between these and the program's
// values.
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

/// On @main: the axes and their sizes, the last of which varies fastest, "data=2, model=4".
inline constexpr llvm::StringLiteral kMeshAttr = "tressel.mesh";
/// On an argument or result of @main: how it is cut, a word per dimension: "data, -". A word is the axis, several
/// joined by + (the first cuts into the largest parts), or - for a dimension that is whole. "" leaves all to
/// propagation.
inline constexpr llvm::StringLiteral kShardingAttr = "tressel.sharding";
/// On @main, from the pass `shard` until ranks are expanded: ops on ranks compute parts.
inline constexpr llvm::StringLiteral kCutAttr = "tressel.cut";
/// On @main, with a mesh: ranks along one axis of it are one accelerator, which has one micro-batch after the other,
/// and stages (Stage.h) go through several accelerators: {axis = "micro", size = 4 : i64, order = "1f1b"}. Of `size`,
/// the accelerators in a row, and `order` (PipelineOrder.h), the defaults are 1 and "best".
inline constexpr llvm::StringLiteral kPipelineAttr = "tressel.pipeline";
/// On @main, once ranks of a pipeline are expanded: its `order`, "" where the best is to be found.
inline constexpr llvm::StringLiteral kMicroBatchOrderAttr = "tressel.micro_batch_order";
/// On @main, with a mesh: each rank runs a program of its own, on the first accelerator of its machine, and finds
/// inputs and results in parts.
inline constexpr llvm::StringLiteral kRankProgramAttr = "tressel.rank_program";
/// On an argument or result in the memory of the ranks: in the memory of the rank's host, not of its accelerator.
inline constexpr llvm::StringLiteral kOnHostAttr = "tressel.on_host";
/// As kDeviceAttr: computed by every rank. As kHomeAttr, of an argument or result of @main: each rank has its part in its memory, from call
/// to call if it is a state. After the pass `shard` such an argument has the type of the part, and keeps its kShardingAttr.
inline constexpr llvm::StringLiteral kRanks = "ranks";

inline bool isOnRanks(mlir::Operation *op) {
  auto device = op->getAttrOfType<mlir::StringAttr>(kDeviceAttr);
  return device && device == kRanks;
}
inline void setOnRanks(mlir::Operation *op) {
  op->setAttr(kDeviceAttr, mlir::StringAttr::get(op->getContext(), kRanks));
}

/// The op `shard`: its result is the operand, and is cut as its attribute `axes` says.
bool isShardAnnotation(mlir::Operation *op);

/// What ranks do together: all_reduce, all_gather, reduce_scatter. It has one operand and one result, and names axes.
bool isCollective(mlir::Operation *op);
mlir::ArrayAttr axesOfCollective(mlir::Operation *op);

/// Whether an argument or result of @main is in the memory of the ranks.
bool isArgumentOnRanks(mlir::func::FuncOp main, unsigned i);
bool isResultOnRanks(mlir::func::FuncOp main, unsigned i);

/// What ExpandRanks calls a rank's part of an argument or result: "0.weight@1".
std::string nameOfPart(llvm::StringRef name, int64_t rank);

struct Mesh {
  std::vector<runtime::MeshAxis> axes;
  std::optional<unsigned> time; ///< the axis whose ranks are one accelerator, one after the other (kPipelineAttr)
  int64_t inRow = 1;            ///< accelerators for the stages of a pipeline; each is one per rank of the other axes
  bool empty() const { return axes.empty(); }
  bool liesInTime(unsigned axis) const { return time == axis; }
  /// Ranks along the axes that lie in space: accelerators that compute one stage.
  int64_t numPlaces() const { return numRanks() / (time ? sizeOf(*time) : 1); }
  int64_t numAccelerators() const { return inRow * numPlaces(); }
  /// The rank's number among those of its micro-batch, and its micro-batch.
  int64_t placeInSpace(int64_t rank) const;
  int64_t microBatchOf(int64_t rank) const { return time ? placeOf(rank, *time) : 0; }
  /// The accelerator on which a rank computes a stage, counted as acceleratorsOf does.
  int64_t acceleratorOf(int64_t rank, int64_t stage) const { return stage % inRow * numPlaces() + placeInSpace(rank); }
  int64_t sizeOf(unsigned axis) const { return axes[axis].size.number(); }
  int64_t numRanks() const { return runtime::numRanks(axes); }
  /// Ranks along some axes.
  int64_t numAlong(llvm::ArrayRef<unsigned> some) const;
  /// The number of a rank's coordinates along some axes, row-major.
  int64_t placeOf(int64_t rank, llvm::ArrayRef<unsigned> some) const;
  /// The rank whose coordinates along `some` have that number, and which has those of `like` along the others.
  int64_t rankAt(int64_t place, llvm::ArrayRef<unsigned> some, int64_t like) const;
  std::optional<unsigned> find(llvm::StringRef name) const;
  /// "data=2, model=4".
  std::string str() const;
};
/// kPipelineAttr; without `order` the best one is found.
mlir::DictionaryAttr pipelineAttr(mlir::MLIRContext *context, llvm::StringRef axis, int64_t inRow,
                                  llvm::StringRef order = "");
/// The mesh of @main; one without axes where it has none. An error for a text that is no mesh.
llvm::FailureOr<Mesh> meshOf(mlir::func::FuncOp main);
/// What an op says by `over`; names that the mesh lacks are an error at the op.
llvm::FailureOr<llvm::SmallVector<unsigned>> axesOf(mlir::Operation *op, mlir::ArrayAttr over, const Mesh &mesh);
mlir::ArrayAttr namesOf(mlir::MLIRContext *context, llvm::ArrayRef<unsigned> axes, const Mesh &mesh);

/// Which axes cut each dimension.
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
/// What is wrong with the text for a tensor of this rank, or the sharding.
struct ParsedSharding {
  Sharding sharding;
  std::string error;
};
ParsedSharding parseSharding(llvm::StringRef text, int rank, const Mesh &mesh);

/// The size of the part of a dimension on a rank, in the rank's coordinates (runtime::rankSymbol) where parts differ:
/// they differ by one at most, and the first are the larger ones.
Size partOf(Size size, llvm::ArrayRef<unsigned> axes, const Mesh &mesh);
/// Where it begins in the whole.
Size firstOf(Size size, llvm::ArrayRef<unsigned> axes, const Mesh &mesh);
TensorType partOf(const TensorType &whole, const Sharding &sharding, const Mesh &mesh);
/// With the coordinates of one rank.
dim::Values coordinatesOf(int64_t rank, const Mesh &mesh);

} // namespace tressel::graph
