// What depends on what, found by running the code once: z = x * y + 2, and A = 2; B = A + 1; C = A + 2; D = B * C,
// where B and C do not depend on each other.
//
//   dependency_graph [FOLDER] [--timeline FILE]     where the pictures go: here, if not given
//
// With --timeline the same graph is run op by op, on a million elements: B and C on two lanes.
#include "draw_timeline.h"

#include <tressel/tressel.h>

#include <filesystem>
#include <fstream>
#include <iostream>

using namespace tressel;

namespace {

void print(const std::filesystem::path &file) { std::cout << std::ifstream(file).rdbuf() << "\n"; }

} // namespace

int main(int argc, char **argv) try {
  const std::string timeline = timing::timeline_option(argc, argv);
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  const Tensor x = ones({1, 2}), y = ones({1, 2});
  auto first = jit([](Tensor x, Tensor y) {
    Tensor z = x * y + 2.0f;
    return z;
  });
  auto second = jit([](Tensor a) {
    Tensor b = a + 1.0f;
    Tensor c = a + 2.0f;
    Tensor d = b * c;
    return d;
  });
  for (const char *form : {".txt", ".dot", ".svg"}) {
    draw_graph(first, folder / ("multiply-add" + std::string(form)), x, y);
    draw_graph(second, folder / ("two-branches" + std::string(form)), 2.0f);
  }
  std::cout << "What stands in one row can run at once.\n\n";
  print(folder / "multiply-add.txt");
  print(folder / "two-branches.txt");
  std::cout << "drawn in multiply-add and two-branches, .svg and .dot\n";
  const float z = slice(first(x, y), {0, 0}, {1, 1}).item<float>(), d = second(2.0f).item<float>();
  std::cout << "z = " << z << ", D = " << d << "\n";
  const Tensor a = full({1 << 20}, 2);
  timing::draw_timeline(timeline, [&] {
    Tensor b = a + 1.0f;
    Tensor c = a + 2.0f;
    (b * c).wait();
  });
  return z == 3 && d == 12 ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "dependency_graph: " << e.what() << "\n";
  return 1;
}
