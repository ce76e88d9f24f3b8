// Random products and convolutions of sizes for tile registers, compiled and run, against the interpreter: every
// element type, sides that are packed, plain or transposed, sizes that end anywhere in a tile, batches, groups, dynamic
// rows, what follows on the same units, several threads; one program in ten keeps subnormal numbers, as tiles do not.
//   random-products [--seed S] [--count N]
// With TRESSEL_KERNEL_TILES=emulated it is a failure if most programs multiply no tiles. A program that gives other
// results is printed with its seed. Exit status: 0 fine, 1 a failure.
#include "ir/graph/Graph.h"
#include "runtime/kernels/EmulatedTiles.h"
#include "runtime/kernels/Levels.h"
#include "test/support/SizedRun.h"
#include "tressel/runtime/Error.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace tressel;
using op::Ints;
using test::ProgramBuilder;

namespace {

llvm::cl::opt<uint64_t> seedOption("seed", llvm::cl::desc("of the first program"), llvm::cl::init(1));
llvm::cl::opt<int> countOption("count", llvm::cl::desc("number of programs"), llvm::cl::init(100));

struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<dim::Values> sizes; ///< that it is run at
  DType type;
  bool keepsSubnormals; ///< which tiles do not: they must not be used then
};

class Generator {
public:
  Generator(mlir::MLIRContext &context, uint64_t seed) : b_(context), random_(seed) {}

  Program make() {
    const DType types[] = {DType::f32, DType::f32, DType::f16, DType::bf16};
    type_ = types[pick(0, 3)];
    mlir::Value y = oneIn(3) ? convolution() : product();
    for (int64_t i = pick(0, 2); i > 0; --i)
      y = follow(y);
    Program program{b_.finish({y}), {}, type_, oneIn(10)};
    if (!isDynamic_)
      program.sizes.push_back({});
    else
      for (int64_t rows : {pick(64, 200), pick(1, 63), pick(129, 260)})
        program.sizes.push_back(test::sizes({{dim::symbol("n"), rows}}));
    return program;
  }

private:
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool oneIn(int64_t n) { return pick(1, n) == 1; }
  mlir::Value side(Shape shape, bool isWeight) {
    const TensorType type{type_, shape};
    return isWeight ? b_.state(type, "w" + std::to_string(next_++)) : b_.input(type, "x" + std::to_string(next_++));
  }
  mlir::Value product() {
    const bool deep = oneIn(4), many = oneIn(8), batched = oneIn(4);
    const int64_t m = deep   ? pick(80, 140)
                      : many ? pick(385, 430)
                             : pick(64, 260),
                  n = deep ? pick(100, 180) : pick(60, 260), k = deep ? pick(500, 640) : pick(32, 130),
                  batch = pick(2, 3);
    isDynamic_ = oneIn(4);
    const Size rows = isDynamic_ ? dim::symbol("n") : Size(m);
    const bool turnsLeft = !isDynamic_ && oneIn(5), turnsRight = oneIn(3), ownRight = batched && oneIn(2);
    const Ints swap2{1, 0}, swap3{0, 2, 1};
    auto sided = [&](bool three, Size first, Size second, bool turned, bool isWeight) {
      if (turned)
        std::swap(first, second);
      mlir::Value v = side(three ? Shape{batch, first, second} : Shape{first, second}, isWeight);
      return turned ? b_.op("transpose", {v}, {{"permutation", three ? swap3 : swap2}}) : v;
    };
    mlir::Value left = sided(batched, rows, k, turnsLeft, false);
    mlir::Value right = sided(ownRight, k, n, turnsRight, !ownRight && !oneIn(3));
    return b_.op("matmul", {left, right});
  }
  mlir::Value convolution() {
    const int64_t groups = oneIn(5) ? 2 : 1, window = oneIn(2) ? 1 : 3, stride = oneIn(4) ? 2 : 1,
                  size = stride * pick(9, 13), in = groups * (window == 1 ? pick(32, 130) : pick(32, 50)),
                  out = groups * pick(64, 110), batch = window == 1 ? pick(1, 2) : 1;
    const bool last = !oneIn(3);
    const int64_t pad = window / 2 * pick(0, 1);
    mlir::Value image = side(last ? Shape{batch, size, size + 1, in} : Shape{batch, in, size, size + 1}, false);
    mlir::Value weights = side({out, in / groups, window, window}, true);
    return b_.op("conv", {image, weights},
                 {{"channels_last", last},
                  {"groups", groups},
                  {"strides", Ints{stride, stride}},
                  {"pad_low", Ints{pad, pad}},
                  {"pad_high", Ints{pad, window / 2}}});
  }
  /// What may run on the units of `y`.
  mlir::Value follow(mlir::Value y) {
    const Shape shape = graph::fromMlir(y.getType()).shape;
    switch (pick(0, 3)) {
    case 0:
      return b_.op("add", {y, side({shape[shape.rank() - 1]}, true)});
    case 1:
      return b_.op("relu", {y});
    case 2:
      return b_.op("mul", {y, side(shape, false)});
    default:
      return b_.op("tanh", {y});
    }
  }

  ProgramBuilder b_;
  std::mt19937_64 random_;
  DType type_ = DType::f32;
  bool isDynamic_ = false;
  int next_ = 0;
};

/// Runs a program at its sizes; what is wrong with it, or "".
std::string problemOf(const Program &program, uint64_t seed) {
  const int64_t before = tressel_emulated_tile_products();
  try {
    test::SizedRun run(*program.module, {.allowLibrary = false,
                                         .keepSubnormals = program.keepsSubnormals,
                                         .quickCode = true,
                                         .prefer = "builtin",
                                         .cache = nullptr});
    for (const dim::Values &dims : program.sizes)
      if (std::string difference = run.differsAt(dims, op::interp::looseTolerance(program.type), seed);
          !difference.empty())
        return difference;
  } catch (const Error &error) {
    return error.what();
  }
  return program.keepsSubnormals && tressel_emulated_tile_products() > before ? "flushes subnormal numbers" : "";
}

} // namespace

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "Random products and convolutions against the reference interpreter\n");
  const uint64_t first = seedOption; // a linker that runs in this process resets LLVM's options
  const int count = countOption;
  bool isEmulated = false;
  try {
    isEmulated = kernels::kernelLevel().split == &tressel_emulated_tiles;
  } catch (const Error &error) {
    llvm::errs() << "random-products: " << error.what() << "\n";
    return 1;
  }
  mlir::DialectRegistry registry;
  graph::registerDialects(registry);
  int failures = 0, onTiles = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count) && failures < 3; ++seed) {
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    const Program program = Generator(context, seed).make();
    const int64_t before = tressel_emulated_tile_products();
    if (const std::string problem = problemOf(program, seed); !problem.empty()) {
      ++failures;
      llvm::errs() << "FAILED seed " << seed << ": " << problem << "\n" << *program.module << "\n";
    }
    onTiles += tressel_emulated_tile_products() > before;
  }
  llvm::outs() << count << " programs";
  if (isEmulated)
    llvm::outs() << ", " << onTiles << " of them on emulated tiles, which were multiplied "
                 << tressel_emulated_tile_products() << " times";
  llvm::outs() << ", " << failures << " failures\n";
  return failures > 0 || (isEmulated && 2 * onTiles < count) ? 1 : 0;
}
