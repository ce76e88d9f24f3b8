// A tiled Cholesky factorization over the accelerators of a machine, A = L L^T: serial code over tiles, two kernels of
// one's own, one line that says where a tile lives. What goes when, which tiles are copied where and what hides behind
// what is the compiler's affair.
//
//   cholesky [MACHINE] [N] [ACCELERATORS] [--figures FILE]     sim:4gpu-pcie3, 32768 and 4, if not given
//
// The factorization of an N x N matrix is planned and run at that size, and compared with a plain one at 1/16 of it. On
// a simulated machine it runs in time alone, which takes no memory and is virtual: by the machine's figures
// (docs/machines.md), the same on every computer; and is compared at 1/128. "cuda" is a computer with cards, "cuda:0,0"
// one card as two accelerators.
#include "machine_runs.h"

#include <tressel/tressel.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>

using namespace tressel;
using namespace machine_runs;

namespace {

/// 16 x 16 tiles, of which the lower triangle is kept, row by row.
constexpr int kTiles = 16;
using Tiles = std::array<Tensor, kTiles *(kTiles + 1) / 2>;
Tensor &at(Tiles &tiles, int i, int j) { return tiles[static_cast<size_t>(i * (i + 1) / 2 + j)]; }

//--- Two kernels (docs/custom-ops.md) ---------------------------------------------------------------------------------

/// L of one tile A = L L^T.
int32_t potrf_kernel(const tressel_call *call, int64_t, int64_t) {
  const int64_t n = call->inputs[0].sizes[0];
  const float *a = static_cast<const float *>(call->inputs[0].data);
  float *l = static_cast<float *>(call->outputs[0].data);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = a[i * n + j];
      for (int64_t k = 0; k < std::min(i, j); ++k)
        sum -= l[i * n + k] * l[j * n + k];
      if (i == j && !(sum > 0)) {
        std::snprintf(call->message, static_cast<size_t>(call->message_bytes), "the matrix is not positive definite");
        return 1;
      }
      l[i * n + j] = j > i ? 0 : j == i ? std::sqrt(sum) : sum / l[j * n + j];
    }
  return 0;
}

/// X with X L^T = A, row by row.
int32_t trsm_kernel(const tressel_call *call, int64_t begin, int64_t end) {
  const int64_t n = call->inputs[0].sizes[1];
  const float *a = static_cast<const float *>(call->inputs[0].data);
  const float *l = static_cast<const float *>(call->inputs[1].data);
  float *x = static_cast<float *>(call->outputs[0].data);
  for (int64_t i = begin; i < end; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k)
        sum -= x[i * n + k] * l[j * n + k];
      x[i * n + j] = sum / l[j * n + j];
    }
  return 0;
}

const CustomOp &potrf =
    register_op({.name = "demo.potrf",
                 .infer =
                     [](auto in) {
                       if (in[0].dtype != f32 || in[0].rank() != 2 || in[0].shape[0] != in[0].shape[1])
                         throw ShapeError("takes a square tile of f32");
                       return std::vector{in[0]};
                     },
                 .cpu = potrf_kernel,
                 .flops =
                     [](auto in, auto) {
                       const Size n = in[0].shape[0];
                       return n * n * n / 3;
                     }});
const CustomOp &trsm = register_op({.name = "demo.trsm",
                                    .infer =
                                        [](auto in) {
                                          if (in[0].dtype != f32 || !(in[0] == in[1]) || in[0].rank() != 2)
                                            throw ShapeError("takes two equal tiles of f32");
                                          return std::vector{in[0]};
                                        },
                                    .cpu = trsm_kernel,
                                    .num_inputs = 2,
                                    .range = [](auto in, auto) { return in[0].shape[0]; },
                                    .grain = 16,
                                    .flops =
                                        [](auto in, auto) {
                                          const Size n = in[0].shape[0];
                                          return n * n * n;
                                        }});

//--- The factorization ------------------------------------------------------------------------------------------------

/// Block-cyclic over a grid of two rows of accelerators: neighbours in a row or column of tiles live apart.
Device owner(int i, int j, int accelerators) {
  const int columns = std::max(1, accelerators / 2);
  return gpu(accelerators < 2 ? 0 : i % 2 * columns + j % columns);
}

/// As a textbook has it. Each tile is computed where it lives. Where `isCard`, the kernels above, which are C, run on
/// the host, for tiles of the diagonal alone: those below them are products with L^-T, the X of X L^T = 1.
Tiles factorize(Tiles a, int accelerators, bool isCard) {
  auto on = [&](int i, int j, auto fn) { at(a, i, j) = with_device(owner(i, j, accelerators), fn); };
  for (int k = 0; k < kTiles; ++k) {
    Tensor inverse;
    if (isCard)
      at(a, k, k) = with_device(cpu(), [&] {
        Tensor l = potrf(at(a, k, k));
        inverse = trsm(eye(l.shape()), l);
        return l;
      });
    else
      on(k, k, [&] { return potrf(at(a, k, k)); });
    for (int i = k + 1; i < kTiles; ++i)
      on(i, k, [&] { return isCard ? matmul(at(a, i, k), inverse) : trsm(at(a, i, k), at(a, k, k)); });
    for (int i = k + 1; i < kTiles; ++i)
      for (int j = k + 1; j <= i; ++j)
        on(i, j, [&] { return at(a, i, j) - matmul(at(a, i, k), transpose(at(a, j, k))); });
  }
  return a;
}

auto jitted(const std::string &machine, int accelerators) {
  return jit(
      [accelerators, isCard = machine.starts_with("cuda")](Tiles a) {
        Tiles l = factorize(std::move(a), accelerators, isCard);
        for (Tensor &tile : l)
          tile = tile.to(cpu());
        return l;
      },
      {.name = "cholesky"});
}

void plan(const std::string &machine, int64_t n, int accelerators, Figures &figures) {
  auto f = jitted(machine, accelerators);
  f.compile(std::vector<TensorSpec>(std::tuple_size_v<Tiles>, TensorSpec(f32, {n / kTiles, n / kTiles})));
  const Prediction p = f.explain();
  Tiles tiles;
  const int64_t size = n / kTiles;
  for (int i = 0; i < kTiles; ++i)
    for (int j = 0; j <= i; ++j) { // positive definite: far from 1 by less than 1
      at(tiles, i, j) = operand(machine, {size, size}, static_cast<uint64_t>(1 + i * kTiles + j),
                                0.1 / std::sqrt(static_cast<double>(n)));
      if (i == j)
        at(tiles, i, j) = at(tiles, i, j) + eye({size, size});
    }
  const double ms = milliseconds(machine, f, tiles);
  figures.add("step_ms", ms);
  if (!is_simulated(machine))
    figures.add("one_accelerator_ms", milliseconds(machine, jitted(machine, 1), tiles));
  std::cout << "\n1. L of a matrix of " << n << "x" << n << " in tiles of " << n / kTiles << "x" << n / kTiles << " on "
            << accelerators << " accelerators, from the host's memory and back\n"
            << std::fixed << std::setprecision(1) << "   step: planned " << p.step_seconds * 1e3 << " ms, "
            << word_of(machine) << " " << ms << " ms; planned "
            << std::pow(static_cast<double>(n), 3) / 3 / p.step_seconds * 1e-12
            << " TFLOP/s; no order of its commands takes less than " << p.lower_bound_seconds * 1e3 << " ms ("
            << std::setprecision(3) << p.step_seconds / p.lower_bound_seconds << " times that); overlap "
            << p.overlap.value_or(0) << "\n\n"
            << p.drawing;
  f.draw_plan("cholesky.html");
  std::cout << "   drawn in cholesky.html\n";
}

/// L by the textbook's three loops, in f64.
std::vector<double> plain(const std::vector<float> &a, int64_t n) {
  std::vector<double> l(a.size(), 0);
  auto of = [&](int64_t i, int64_t j) -> double & { return l[static_cast<size_t>(i * n + j)]; };
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) {
      double sum = a[static_cast<size_t>(i * n + j)];
      for (int64_t k = 0; k < j; ++k)
        sum -= of(i, k) * of(j, k);
      of(i, j) = i == j ? std::sqrt(sum) : sum / of(j, j);
    }
  return l;
}

bool compute(const std::string &machine, int64_t n, int accelerators, Figures &figures) {
  const Tensor b = rng::normal({n, n}, 1);
  const Tensor matrix = matmul(b, transpose(b)) / static_cast<double>(n) + eye({n, n});
  const int64_t size = n / kTiles;
  Tiles a;
  for (int i = 0; i < kTiles; ++i)
    for (int j = 0; j <= i; ++j)
      at(a, i, j) = slice(matrix, {i * size, j * size}, {(i + 1) * size, (j + 1) * size});
  auto f = jitted(machine, accelerators);
  const double before = machine_seconds();
  Tiles l = f(a);
  double largest = 0, difference = 0;
  const std::vector<double> expected = plain(matrix.to_vector<float>(), n);
  std::vector<Tensor> rows;
  for (int i = 0; i < kTiles; ++i) {
    std::vector<Arg> row;
    for (int j = 0; j < kTiles; ++j)
      row.push_back(j <= i ? at(l, i, j) : zeros({size, size}));
    rows.push_back(concat(row, 1));
  }
  const Tensor whole = concat(std::vector<Arg>(rows.begin(), rows.end()), 0);
  const double seconds = machine_seconds() - before;
  const std::vector<float> got = whole.to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(got[i] - expected[i]));
  }
  const double residual =
      sqrt(sum(square(matmul(whole, transpose(whole)) - matrix)) / sum(square(matrix))).item<float>();
  std::cout << "\n2. Computed at " << n << "x" << n << ": |L L^T - A| / |A| = " << std::scientific
            << std::setprecision(1) << residual << ", largest difference from a plain factorization in f64 "
            << difference << " (of " << std::fixed << largest << "); " << std::setprecision(3) << seconds * 1e3
            << (is_simulated(machine) ? " ms of virtual time, planned " : " ms with compiling, planned ")
            << f.explain().step_seconds * 1e3 << "\n";
  figures.add("residual", residual);
  return residual <= 1e-6 && difference <= 1e-4 * largest;
}

} // namespace

int main(int argc, char **argv) try {
  Figures figures(argc, argv);
  const std::string machine = argc > 1 ? argv[1] : "sim:4gpu-pcie3";
  const int64_t n = argc > 2 ? std::atoll(argv[2]) : 32768;
  const int accelerators = argc > 3 ? std::atoi(argv[3]) : 4;
  if (n < kTiles || n % kTiles || accelerators < 1) {
    std::cerr << "usage: cholesky [MACHINE] [N] [ACCELERATORS] [--figures FILE], N a multiple of " << kTiles << "\n";
    return 2;
  }
  use_at_full_size(machine);
  print_title(machine);
  plan(machine, n, accelerators, figures);
  use_machine(machine);
  return compute(machine, std::max<int64_t>(kTiles, n / (is_simulated(machine) ? 128 : 16) / kTiles * kTiles),
                 accelerators, figures)
             ? 0
             : 1;
} catch (const Error &e) {
  std::cerr << "cholesky: " << e.what() << "\n";
  return 1;
}
