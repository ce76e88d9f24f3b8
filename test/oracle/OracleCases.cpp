// Evaluates seeded random calls of every op with every element type it accepts, and writes inputs, attributes and
// results for the NumPy oracle: DIR/manifest.json, and DIR/data.bin with the tensors' bytes one after the other.
//   oracle-cases DIR SEED CASES [gradients] [inject]
// CASES is the number of calls per op and type. With `gradients`, there are calls of f64 only, with random cotangents
// of their results and the operands' gradients (null where one is zero). With `inject`, one element of each result, or
// gradient, is made wrong.
#include "test/support/OpGradient.h"
#include "test/support/Samples.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

using namespace tressel;
using namespace tressel::op;
using nlohmann::json;

namespace {

class Writer {
public:
  explicit Writer(const std::string &folder) : data_(folder + "/data.bin", std::ios::binary) {}
  json tensor(const HostTensor &t) {
    const int64_t bytes = t.type.bytes();
    json entry = {{"dtype", nameOf(t.type.dtype)},
                  {"shape", std::vector<int64_t>(t.type.shape.begin(), t.type.shape.end())},
                  {"offset", offset_},
                  {"bytes", bytes}};
    data_.write(reinterpret_cast<const char *>(t.data.get()), bytes);
    offset_ += bytes;
    return entry;
  }

private:
  std::ofstream data_;
  int64_t offset_ = 0;
};

json attrValue(const Attr &attr) {
  if (const bool *b = std::get_if<bool>(&attr))
    return *b;
  if (const int64_t *i = std::get_if<int64_t>(&attr))
    return *i;
  if (const Size *size = std::get_if<Size>(&attr))
    return size->number();
  if (const double *d = std::get_if<double>(&attr))
    return std::isfinite(*d) ? json(*d) : json{{"float", std::to_string(*d)}}; // JSON has no infinity
  if (const DType *t = std::get_if<DType>(&attr))
    return {{"dtype", nameOf(*t)}};
  if (const std::string *s = std::get_if<std::string>(&attr))
    return *s;
  if (const Ints *values = std::get_if<Ints>(&attr))
    return *values;
  if (const auto *sizes = std::get_if<op::Sizes>(&attr)) {
    json numbers = json::array();
    for (Size size : *sizes)
      numbers.push_back(size.number());
    return numbers;
  }
  return nullptr;
}

/// NaN is for ops that are made for it, integers of any size for those that compute in integers.
test::Values valuesFor(const OpInfo &op, int number) {
  if (!op.domains.empty() || op.decompose || number % 3 == 0)
    return test::Values::Domain;
  if (number % 3 == 2)
    return op.compute == ComputeClass::Float ? test::Values::Domain : test::Values::Wide;
  // A cast of NaN to an integer has no value, and whether a NaN counts that meets padding is left open.
  const bool isMade = op.elementwise && op.elementwise->element == ElementRule::Attr;
  const bool isOpen = isMade || op.family == Family::Contraction || op.family == Family::Convolution;
  return isOpen ? test::Values::Domain : test::Values::Special;
}

const char *nameOf(ComputeClass c) {
  static const char *const names[] = {"Any", "Number", "Float", "Integer", "Bool", "Bits"};
  return names[static_cast<int>(c)];
}

/// An error far above every tolerance.
void corrupt(HostTensor &t, int64_t position) {
  const interp::Element value = interp::load(t, position);
  if (value.isFloat)
    interp::store(t, position, std::isfinite(value.f) ? value.f + 0.25 * (1 + std::abs(value.f)) : 1.0);
  else if (t.type.dtype == bool_)
    interp::store(t, position, value.i == 0);
  else
    interp::store(t, position, num::add(value.i, int64_t(1)));
}

/// Adds random cotangents of the results and what the reverse rule makes of them. False where there is nothing to
/// compare.
bool addGradients(json &item, Writer &writer, const test::OpCall &call, const std::vector<HostTensor> &inputs,
                  test::Random &random, bool inject) {
  std::vector<HostTensor> cotangents;
  for (const TensorType &type : call.results)
    cotangents.push_back(test::randomTensor(type, random, {-1, 1}));
  auto holdsFloats = [](const HostTensor &t) { return isFloat(t.type.dtype); };
  if (std::ranges::none_of(inputs, holdsFloats) || std::ranges::none_of(cotangents, holdsFloats))
    return false;
  std::vector<HostTensor> gradients;
  try {
    gradients = test::OpGradient(call, inputs, cotangents).gradients();
  } catch (const expr::NoGradient &) {
    return false;
  }
  item["cotangents"] = json::array();
  for (const HostTensor &t : cotangents)
    item["cotangents"].push_back(writer.tensor(t));
  item["gradients"] = json::array();
  for (HostTensor &t : gradients) {
    if (inject && t.data && t.type.shape.numElements())
      corrupt(t, random.below(t.type.shape.numElements()));
    item["gradients"].push_back(t.data ? writer.tensor(t) : json());
  }
  return true;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: oracle-cases DIR SEED CASES [gradients] [inject]\n");
    return 2;
  }
  auto hasWord = [&](const char *word) {
    return std::any_of(argv + 4, argv + argc, [&](const char *arg) { return !std::strcmp(arg, word); });
  };
  const std::string folder = argv[1];
  const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  const int numCases = std::atoi(argv[3]);
  const bool inject = hasWord("inject"), withGradients = hasWord("gradients");

  Writer writer(folder);
  json ops = json::array();
  for (size_t number = 0; number < allOps().size(); ++number) {
    const OpInfo &op = *allOps()[number];
    json entry = {{"op", op.name},
                  {"numpy", op.numpy ? op.numpy : ""},
                  {"compute", nameOf(op.compute)},
                  {"composite", op.family == Family::Composite},
                  {"cases", json::array()}};
    for (int type = 0; type < kNumDTypes; ++type) {
      if (withGradients && static_cast<DType>(type) != f64)
        continue;
      // A seed per op and type: a new op does not change the cases of the others.
      uint64_t mixed = seed * 1000003 + static_cast<uint64_t>(type);
      for (const char *c = op.name; *c; ++c)
        mixed = mixed * 1099511628211u ^ static_cast<unsigned char>(*c);
      test::Random random(mixed);
      int made = 0;
      for (int tries = 0; made < numCases && tries < 4 * numCases; ++tries) {
        auto call = test::proposeCall(op, static_cast<DType>(type), random,
                                      {.maxRank = 4, .maxSize = 5, .zeroSize = tries % 4 == 3 ? 0.5 : 0});
        if (!call)
          continue;
        // Now and then a second operand of another type, for promotion.
        if (op.elementwise && call->operands.size() > 1 && random.chance(0.2)) {
          auto mixedTypes = call->operands;
          mixedTypes.back().dtype = static_cast<DType>(random.below(kNumDTypes));
          if (auto again = test::proposeAttrs(op, mixedTypes, random))
            call = again;
        }
        if (op.operands.empty() && call->results[0].dtype != static_cast<DType>(type)) {
          call->attrs[static_cast<size_t>(op.attrIndex("dtype"))] = static_cast<DType>(type);
          Inferred again = op.infer(op, {}, call->attrs);
          if (!again)
            continue;
          call->results = again.types;
        }
        const bool hasPlaces = op.family == Family::Indexing || test::placesOf(op, 1);
        if (hasPlaces && call->operands.size() > 1 && call->operands[1].shape.numElements() &&
            call->operands[0].shape.numElements() == 0)
          continue; // nothing that an index could name
        const test::Values values = withGradients ? test::Values::Domain : valuesFor(op, tries);
        std::vector<HostTensor> inputs;
        for (size_t i = 0; i < call->operands.size(); ++i)
          inputs.push_back(test::randomOperand(*call, i, random, values));
        interp::Evaluation evaluation = interp::run(op, inputs, call->attrs);
        json item = {{"type", nameOf(static_cast<DType>(type))}, {"inputs", json::array()}, {"outputs", json::array()}};
        for (const HostTensor &t : inputs)
          item["inputs"].push_back(writer.tensor(t));
        if (!evaluation)
          item["error"] = evaluation.error;
        for (HostTensor &t : evaluation.outputs) {
          if (inject && !withGradients && t.type.shape.numElements())
            corrupt(t, random.below(t.type.shape.numElements()));
          item["outputs"].push_back(writer.tensor(t));
        }
        for (size_t i = 0; i < op.attrs.size(); ++i)
          item["attrs"][op.attrs[i].name] = attrValue(call->attrs[i]);
        if (withGradients && !addGradients(item, writer, *call, inputs, random, inject))
          continue;
        entry["cases"].push_back(std::move(item));
        ++made;
      }
    }
    for (const OperandSpec &operand : op.operands)
      entry["operands"].push_back(
          {{"name", operand.name}, {"variadic", operand.variadic}, {"optional", operand.optional}});
    ops.push_back(std::move(entry));
  }
  std::ofstream(folder + "/manifest.json") << json{{"seed", seed}, {"ops", std::move(ops)}};
  return 0;
}
