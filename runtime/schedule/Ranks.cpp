#include "tressel/runtime/Ranks.h"

#include "RankRules.h"
#include "ScheduleSizes.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Instantiate.h"

#include <algorithm>
#include <unordered_map>

namespace tressel::runtime {

Size rankSymbol(const MeshAxis &axis) {
  return dim::symbol(concat("rank.", axis.name), 0, dim::bounds(axis.size).hi - 1);
}

int64_t numRanks(std::span<const MeshAxis> mesh) {
  int64_t ranks = 1;
  for (const MeshAxis &axis : mesh)
    if (!axis.size.isNumber() || __builtin_mul_overflow(ranks, axis.size.number(), &ranks))
      throwError<Error>("the size of the mesh's axis '", axis.name, "' is not known, or too large");
  return ranks;
}
int64_t numRanks(std::span<const MeshAxis> mesh, std::span<const uint32_t> axes) {
  std::vector<MeshAxis> some;
  for (uint32_t axis : axes)
    some.push_back(mesh[axis]);
  return numRanks(some);
}

void bindRank(dim::Values &values, std::span<const MeshAxis> mesh, int64_t rank) {
  int64_t rest = rank;
  for (size_t i = mesh.size(); i-- > 0;) {
    const int64_t size = dim::evaluate(mesh[i].size, values);
    if (const Size symbol = rankSymbol(mesh[i]); dim::isSymbol(symbol))
      values.bind(symbol, rest % size);
    rest /= size;
  }
  if (rank < 0 || rest != 0)
    throwError<Error>("the mesh has no rank ", rank);
}

std::string meshFault(const Schedule &s) {
  if (s.mesh.size() > kMaxAxes)
    return concat("a mesh of more than ", kMaxAxes, " axes");
  int64_t least = 1;
  for (size_t i = 0; i < s.mesh.size(); ++i) {
    const MeshAxis &axis = s.mesh[i];
    const bool isNumber = axis.size.isNumber();
    const int64_t lo = isNumber ? axis.size.number() : dim::isSymbol(axis.size) ? dim::bounds(axis.size).lo : 0;
    if (lo < 1 || lo > kMaxRanks || (least *= lo) > kMaxRanks)
      return concat("axis '", axis.name, "' of the mesh has an impossible size, or there are more than ", kMaxRanks,
                    " ranks");
    for (size_t k = 0; k < i; ++k)
      if (s.mesh[k].name == axis.name || (!isNumber && s.mesh[k].size == axis.size))
        return concat("axis '", axis.name, "' of the mesh has the name or symbol of another one");
    const auto name = dim::parse(axis.name);
    if (!name || !dim::isSymbol(*name) || dim::symbolName(*name) != axis.name)
      return concat("'", axis.name, "' is no name of an axis");
  }
  return "";
}

RankRules rankRulesOf(const Schedule &s) {
  RankRules rules;
  std::vector<Size> ranks;
  for (const MeshAxis &axis : s.mesh)
    ranks.push_back(rankSymbol(axis));
  std::unordered_map<int64_t, bool> known; // by the bits of a size
  auto depends = [&](Size size) {
    if (!size.isSymbolic())
      return false;
    const auto [at, isNew] = known.try_emplace(size.bits(), false);
    if (isNew) {
      std::vector<Size> symbols;
      dim::collectSymbols(size, symbols);
      at->second =
          std::ranges::any_of(symbols, [&](Size symbol) { return std::ranges::find(ranks, symbol) != ranks.end(); });
    }
    return at->second;
  };
  for (const BufferDesc &b : s.buffers) {
    rules.sizes.push_back(depends(b.bytes) || std::ranges::any_of(b.type.shape, depends));
    rules.places.push_back(rules.sizes.back() || depends(b.offset));
  }
  rules.loops.assign(s.bodies.size(), false);
  auto look = [&](const CommandList &p) {
    for (const Command &c : p.commands)
      if (c.kind == CommandKind::Loop && c.numScalars > 0 && c.firstScalar < p.scalars.size() &&
          c.body < s.bodies.size())
        for (size_t k = c.firstScalar; k < std::min<size_t>(p.scalars.size(), size_t(c.firstScalar) + c.numScalars);
             ++k)
          rules.loops[c.body] = rules.loops[c.body] || depends(p.scalars[k]);
  };
  look(s.prepare), look(s.step);
  for (const CommandList &body : s.bodies)
    look(body);
  forEachSize(s, [&](Size size) { rules.any = rules.any || depends(size); });
  return rules;
}

} // namespace tressel::runtime
