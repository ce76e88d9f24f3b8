// Makes the kernels known as ops when the library is loaded.
#include <tressel/runtime/CustomOp.h>
#include <tressel/runtime/Error.h>

extern "C" int32_t acme_cube(const tressel_call *call, int64_t begin, int64_t end);
extern "C" int32_t acme_histogram(const tressel_call *call, int64_t begin, int64_t end);

namespace {

using tressel::TensorType;
using Types = tressel::runtime::CustomOp::Types;

std::vector<TensorType> inferHistogram(Types in, const tressel::runtime::CustomOp::Attrs &attrs) {
  if (in[0].dtype != tressel::i32 || in[0].rank() != 1)
    throw tressel::ShapeError("takes a list of i32");
  return {{tressel::i64, {std::get<int64_t>(attrs[0].value)}}};
}

bool registerAll() {
  tressel::runtime::registerCustomOp({
      .name = "acme.cube",
      .summary = "x * x * x",
      .symbol = "acme_cube",
      .library = "libacme_ops.so",
      .kernel = acme_cube,
      .infer = [](Types in, const auto &) { return std::vector{in[0]}; },
      .range = [](Types in, Types, const auto &) { return in[0].shape.numElements(); },
      .grain = 4096,
  });
  tressel::runtime::registerCustomOp({
      .name = "acme.histogram",
      .summary = "how often each number stands in a list",
      .symbol = "acme_histogram",
      .library = "libacme_ops.so",
      .kernel = acme_histogram,
      .attrs = {{"bins", int64_t(10)}},
      .infer = inferHistogram,
  });
  return true;
}

const bool registered = registerAll();

} // namespace
