#include "ir/graph/Mesh.h"

#include "ir/graph/Graph.h"
#include "mlir/IR/Builders.h"
#include "tressel/runtime/Dim.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#define GET_OP_CLASSES
#include "ir/graph/Mesh.cpp.inc"

using namespace mlir;

namespace tressel::graph {

void registerMeshOps(Dialect &dialect) {
  RegisteredOperationName::insert<DealOp>(dialect);
  RegisteredOperationName::insert<CollectOp>(dialect);
  RegisteredOperationName::insert<AllReduceOp>(dialect);
  RegisteredOperationName::insert<AllGatherOp>(dialect);
  RegisteredOperationName::insert<ReduceScatterOp>(dialect);
  RegisteredOperationName::insert<CarryOp>(dialect);
  RegisteredOperationName::insert<CarriedOp>(dialect);
}

bool isShardAnnotation(Operation *op) {
  static const op::OpInfo *const info = op::findOp("shard");
  return infoOf(op) == info;
}

bool isArgumentOnRanks(func::FuncOp main, unsigned i) {
  auto home = main.getArgAttrOfType<StringAttr>(i, kHomeAttr);
  return home && home == kRanks;
}
bool isResultOnRanks(func::FuncOp main, unsigned i) {
  auto home = main.getResultAttrOfType<StringAttr>(i, kHomeAttr);
  return home && home == kRanks;
}

bool isCollective(Operation *op) { return isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op); }
ArrayAttr axesOfCollective(Operation *op) { return op->getAttrOfType<ArrayAttr>("over"); }

std::string nameOfPart(StringRef name, int64_t rank) { return (name + "@" + Twine(rank)).str(); }

int64_t Mesh::numAlong(ArrayRef<unsigned> some) const {
  int64_t ranks = 1;
  for (unsigned axis : some)
    ranks *= sizeOf(axis);
  return ranks;
}

static SmallVector<int64_t> coordinates(int64_t rank, const Mesh &mesh) {
  SmallVector<int64_t> at(mesh.axes.size());
  for (unsigned a = static_cast<unsigned>(mesh.axes.size()); a-- > 0; rank /= mesh.sizeOf(a))
    at[a] = rank % mesh.sizeOf(a);
  return at;
}

int64_t Mesh::placeOf(int64_t rank, ArrayRef<unsigned> some) const {
  const SmallVector<int64_t> at = coordinates(rank, *this);
  int64_t place = 0;
  for (unsigned axis : some)
    place = place * sizeOf(axis) + at[axis];
  return place;
}

int64_t Mesh::placeInSpace(int64_t rank) const {
  SmallVector<unsigned> space;
  for (unsigned axis = 0; axis < axes.size(); ++axis)
    if (!liesInTime(axis))
      space.push_back(axis);
  return placeOf(rank, space);
}

int64_t Mesh::rankAt(int64_t place, ArrayRef<unsigned> some, int64_t like) const {
  SmallVector<int64_t> at = coordinates(like, *this);
  for (unsigned axis : llvm::reverse(some)) {
    at[axis] = place % sizeOf(axis);
    place /= sizeOf(axis);
  }
  int64_t rank = 0;
  for (unsigned a = 0; a < axes.size(); ++a)
    rank = rank * sizeOf(a) + at[a];
  return rank;
}

std::optional<unsigned> Mesh::find(StringRef name) const {
  for (auto [i, axis] : llvm::enumerate(axes))
    if (axis.name == name)
      return static_cast<unsigned>(i);
  return std::nullopt;
}

std::string Mesh::str() const {
  return llvm::join(
      llvm::map_range(axes, [](const runtime::MeshAxis &axis) { return axis.name + "=" + dim::str(axis.size); }), ", ");
}

DictionaryAttr pipelineAttr(MLIRContext *context, StringRef axis, int64_t inRow, StringRef order) {
  Builder b(context);
  SmallVector<NamedAttribute> all{b.getNamedAttr("axis", b.getStringAttr(axis)),
                                  b.getNamedAttr("size", b.getI64IntegerAttr(inRow))};
  if (!order.empty())
    all.push_back(b.getNamedAttr("order", b.getStringAttr(order)));
  return b.getDictionaryAttr(all);
}

/// Reads kPipelineAttr into the mesh.
static LogicalResult readPipeline(func::FuncOp main, Mesh &mesh) {
  Attribute attribute = main->getAttr(kPipelineAttr);
  if (!attribute)
    return success();
  auto refuse = [&](const Twine &why) {
    return main.emitError("has the pipeline ")
           << attribute << ", but " << why
           << "; a pipeline is written like {axis = \"micro\", size = 4 : i64, order = \"1f1b\"}";
  };
  auto pipeline = dyn_cast<DictionaryAttr>(attribute);
  if (!pipeline)
    return refuse("that is no dictionary");
  for (NamedAttribute each : pipeline)
    if (!llvm::is_contained({"axis", "size", "order"}, each.getName().getValue()))
      return refuse("'" + each.getName().getValue() + "' means nothing there");
  auto axis = pipeline.getAs<StringAttr>("axis");
  mesh.time = axis ? mesh.find(axis) : std::nullopt;
  if (!mesh.time)
    return refuse("it names no axis of the mesh, which is " +
                  (mesh.empty() ? std::string("missing") : "\"" + mesh.str() + "\""));
  constexpr int64_t kMost = 4096;
  if (Attribute size = pipeline.get("size")) {
    auto number = dyn_cast<IntegerAttr>(size);
    if (!number || number.getInt() < 1 || number.getInt() > kMost)
      return refuse("its size is no number from 1 to " + Twine(kMost));
    mesh.inRow = number.getInt();
  }
  if (main->hasAttr(kRankProgramAttr))
    return refuse("the program is that of one rank, which has no stages");
  return success();
}

FailureOr<Mesh> meshOf(func::FuncOp main) {
  Mesh mesh;
  Attribute attribute = main->getAttr(kMeshAttr);
  if (!attribute) {
    if (failed(readPipeline(main, mesh)))
      return failure();
    return mesh;
  }
  auto text = dyn_cast<StringAttr>(attribute);
  auto refuse = [&](const Twine &why) {
    return main.emitError("has the mesh ")
           << attribute << ", but " << why << "; a mesh is written like \"data=2, model=4\"";
  };
  if (!text)
    return refuse("that is no text");
  constexpr int64_t kMost = 4096;
  int64_t ranks = 1;
  SmallVector<StringRef> words;
  text.getValue().split(words, ',');
  for (StringRef word : words) {
    auto [name, number] = word.trim().split('=');
    name = name.trim();
    const auto symbol = dim::parse(name.str());
    int64_t size = 0;
    if (name.empty() || !symbol || !dim::isSymbol(*symbol) || dim::symbolName(*symbol) != std::string_view(name))
      return refuse("'" + name + "' is no name of an axis");
    if (number.trim().getAsInteger(10, size) || size < 1 || size > kMost || (ranks *= size) > kMost)
      return refuse("the size of '" + name + "' is no number from 1 to " + Twine(kMost));
    if (mesh.find(name))
      return refuse("two axes are called '" + name + "'");
    mesh.axes.push_back({name.str(), size});
  }
  if (failed(readPipeline(main, mesh)))
    return failure();
  return mesh;
}

FailureOr<SmallVector<unsigned>> axesOf(Operation *op, ArrayAttr over, const Mesh &mesh) {
  SmallVector<unsigned> axes;
  for (Attribute name : over) {
    const auto axis = mesh.find(cast<StringAttr>(name).getValue());
    if (!axis || llvm::is_contained(axes, *axis))
      return op->emitOpError("(rule 1) names ") << name << (axis ? " twice" : ", which is no axis of the mesh");
    axes.push_back(*axis);
  }
  return axes;
}

ArrayAttr namesOf(MLIRContext *context, ArrayRef<unsigned> axes, const Mesh &mesh) {
  SmallVector<Attribute> names;
  for (unsigned axis : axes)
    names.push_back(StringAttr::get(context, mesh.axes[axis].name));
  return ArrayAttr::get(context, names);
}

bool Sharding::isWhole() const {
  return llvm::all_of(dims, [](const auto &axes) { return axes.empty(); });
}
bool Sharding::uses(unsigned axis) const {
  return llvm::any_of(dims, [&](const auto &axes) { return llvm::is_contained(axes, axis); });
}

std::string Sharding::str(const Mesh &mesh) const {
  return llvm::join(
      llvm::map_range(
          dims,
          [&](const SmallVector<unsigned, 2> &axes) {
            return axes.empty()
                       ? std::string("-")
                       : llvm::join(llvm::map_range(axes, [&](unsigned axis) { return mesh.axes[axis].name; }), "+");
          }),
      ", ");
}

ParsedSharding parseSharding(StringRef text, int rank, const Mesh &mesh) {
  ParsedSharding parsed{Sharding::whole(rank), ""};
  SmallVector<StringRef> words;
  if (!text.trim().empty())
    text.split(words, ',');
  if (words.size() != static_cast<size_t>(rank)) {
    parsed.error = "names " + std::to_string(words.size()) + " dimensions of a tensor that has " + std::to_string(rank);
    return parsed;
  }
  for (auto [dim, word] : llvm::enumerate(words)) {
    if (word.trim() == "-")
      continue;
    SmallVector<StringRef> names;
    word.split(names, '+');
    for (StringRef name : names) {
      if (name.trim().empty()) {
        parsed.error = "names no axis for dimension " + std::to_string(dim) + ", which is not cut where it is -";
        return parsed;
      }
      const auto axis = mesh.find(name.trim());
      if (!axis) {
        parsed.error = "names the axis '" + name.trim().str() + "', which the mesh " +
                       (mesh.empty() ? "(there is none)" : "(" + mesh.str() + ")") + " does not have";
        return parsed;
      }
      if (parsed.sharding.uses(*axis)) {
        parsed.error = "names the axis '" + name.trim().str() + "' twice, which can cut one dimension once";
        return parsed;
      }
      parsed.sharding.dims[dim].push_back(*axis);
    }
  }
  return parsed;
}

Size partOf(Size size, ArrayRef<unsigned> axes, const Mesh &mesh) {
  for (unsigned axis : axes) {
    const int64_t ranks = mesh.sizeOf(axis);
    if (const auto even = dim::divideExactly(size, ranks))
      size = *even;
    else
      size = dim::floorDiv(size + (ranks - 1) - runtime::rankSymbol(mesh.axes[axis]), ranks);
  }
  return size;
}

Size firstOf(Size size, ArrayRef<unsigned> axes, const Mesh &mesh) {
  Size first = 0;
  for (unsigned axis : axes) {
    const int64_t ranks = mesh.sizeOf(axis);
    const Size coordinate = runtime::rankSymbol(mesh.axes[axis]);
    if (const auto even = dim::divideExactly(size, ranks))
      first += coordinate * *even;
    else
      first += coordinate * dim::floorDiv(size, ranks) + dim::min(coordinate, dim::mod(size, ranks));
    size = partOf(size, axis, mesh);
  }
  return first;
}

TensorType partOf(const TensorType &whole, const Sharding &sharding, const Mesh &mesh) {
  TensorType part = whole;
  for (auto [dim, axes] : llvm::enumerate(sharding.dims))
    part.shape[static_cast<int>(dim)] = partOf(whole.shape[static_cast<int>(dim)], axes, mesh);
  return part;
}

dim::Values coordinatesOf(int64_t rank, const Mesh &mesh) {
  dim::Values values;
  runtime::bindRank(values, mesh.axes, rank);
  return values;
}

} // namespace tressel::graph
