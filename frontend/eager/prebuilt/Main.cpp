// The build step that compiles the kernels of common imperative ops: prebuild OUT LEVEL CACHE.
//
// Ops and element types are those of the records (`prebuilt`), layouts the ones below. Each call goes through
// classesOf, as it does in a program, so that what is made here is what is looked for there. OUT holds a text of one
// line per kernel, "symbol range points ns", ended by an empty line, and then the image. Objects are kept in the folder
// CACHE: a build that changes no kernel compiles none.
#include "frontend/eager/Class.h"
#include "ir/op/Infer.h"
#include "ir/op/Table.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include <cstdio>
#include <iostream>
#include <map>
#include <string>

using namespace tressel;
using op::Attr;
using op::Attrs;
using op::OpInfo;

namespace {

struct Common {
  const OpInfo *op;
  std::vector<DType> types;
};
const std::vector<Common> &commonOps() {
  using namespace op;
  static const std::vector<Common> ops = {
#include "ir/op/Prebuilt.inc"
  };
  return ops;
}

class Calls {
public:
  /// Adds the kernel of a call, if there is one.
  void add(const OpInfo &op, const std::vector<TensorType> &operands, Attrs attrs, const std::string &cpu) {
    if (!op::completeAttrs(op, attrs).empty())
      return;
    const op::Inferred inferred = op::inferTypes(op, operands, attrs);
    if (!inferred)
      return;
    for (const eager::Classified &c : eager::classesOf(op, operands, inferred.types.front(), attrs)) {
      const std::string text = c.call.str();
      if (kernels_.contains(text))
        return;
      if (auto kernel = codegen::planOpKernel(c.call, cpu)) {
        kernels_.emplace(text, std::move(*kernel));
        return;
      }
    }
  }
  const std::map<std::string, codegen::OpKernel> &kernels() const { return kernels_; }

private:
  std::map<std::string, codegen::OpKernel> kernels_;
};

void addElementwise(Calls &calls, const OpInfo &op, DType type, const Attrs &attrs, const std::string &cpu) {
  const size_t n = op.operands.size();
  auto call = [&](const std::vector<Shape> &shapes) {
    std::vector<TensorType> types;
    for (size_t i = 0; i < n; ++i)
      types.push_back({op.elementwise && op.elementwise->boolOperands >> i & 1 ? DType::boolean : type, shapes[i]});
    calls.add(op, types, attrs, cpu);
  };
  const Shape flat{64}, huge{int64_t(1) << 25};
  for (size_t singles = 0; singles < size_t(1) << n; ++singles) { // a bit per operand that is one element
    std::vector<Shape> shapes, large;
    for (size_t i = 0; i < n; ++i) {
      shapes.push_back(singles >> i & 1 ? Shape() : flat);
      large.push_back(singles >> i & 1 ? Shape() : huge);
    }
    call(shapes);
    if (n <= 2 && singles != (size_t(1) << n) - 1)
      call(large);
  }
  if (n != 2)
    return;
  const Shape whole{6, 64}, row{64}, column{6, 1};
  for (const Shape &part : {row, column}) {
    call({whole, part});
    call({part, whole});
  }
}

void addReduction(Calls &calls, const OpInfo &op, DType type, const std::string &cpu) {
  const bool one = op.attrs[0].kind == op::AttrKind::Int;
  auto call = [&](const Shape &shape, int64_t axis) {
    calls.add(op, {{type, shape}}, {one ? Attr(axis) : Attr(op::Ints{axis}), Attr(false)}, cpu);
  };
  for (int64_t length : {100, 1000, 10000}) { // one of each step of a reduced size
    call({length}, 0);
    call({7, length}, 1);
    call({length, 7}, 0);
  }
}

void addRows(Calls &calls, const OpInfo &op, DType type, const std::string &cpu) {
  for (int64_t length : {100, 1000, 10000}) {
    calls.add(op, {{type, {length}}}, Attrs(op.attrs.size()), cpu);
    calls.add(op, {{type, {7, length}}}, Attrs(op.attrs.size()), cpu);
    calls.add(op, {{type, {3, 7, length}}}, Attrs(op.attrs.size()), cpu);
  }
}

Calls commonCalls(const std::string &cpu) {
  Calls calls;
  for (const Common &common : commonOps()) {
    const OpInfo &op = *common.op;
    for (DType type : common.types) {
      if (op.family == op::Family::Reduction && op.combine != op::Combine::None) {
        addReduction(calls, op, type, cpu);
      } else if (op.family == op::Family::Elementwise) {
        const int dtype = op.attrIndex("dtype");
        if (dtype < 0) {
          addElementwise(calls, op, type, {}, cpu);
          continue;
        }
        for (DType to : common.types) { // conversions
          Attrs attrs(op.attrs.size());
          attrs[static_cast<size_t>(dtype)] = to;
          addElementwise(calls, op, type, attrs, cpu);
        }
      } else {
        addRows(calls, op, type, cpu);
      }
    }
  }
  return calls;
}

} // namespace

int main(int argc, char **argv) try {
  if (argc != 4) {
    std::cerr << "usage: prebuild OUT LEVEL CACHE\n";
    return 2;
  }
  const std::string cpu = argv[2];
  const Calls calls = commonCalls(cpu);
  std::vector<codegen::OpKernel> kernels;
  std::string index;
  for (const auto &[text, kernel] : calls.kernels()) {
    char ns[32];
    std::snprintf(ns, sizeof ns, "%.4g", kernel.nsPerPoint);
    std::string range = dim::spell(kernel.range), points = dim::spell(kernel.points);
    std::erase(range, ' ');
    std::erase(points, ' ');
    index += kernel.symbol + " " + range + " " + points + " " + ns + " " +
             std::to_string(static_cast<int>(kernel.floats)) + "\n";
    kernels.push_back(kernel);
  }
  codegen::ObjectCache cache(argv[3]);
  const std::vector<std::byte> image = codegen::compileOpKernels(kernels, cpu, &cache);
  index += "\n";
  index.resize((index.size() + 63) / 64 * 64, '\n');
  std::vector<std::byte> file;
  for (char c : index)
    file.push_back(std::byte(c));
  file.insert(file.end(), image.begin(), image.end());
  runtime::writeFile(argv[1], file);
  std::printf("%s: %zu kernels, %zu bytes\n", cpu.c_str(), kernels.size(), file.size());
  return 0;
} catch (const Error &e) {
  std::cerr << "prebuild: " << e.what() << "\n";
  return 1;
}
