// The build step that compiles the kernels of common imperative ops: prebuild OUT LEVEL CACHE.
//
// Each of the common calls goes through classesOf, as it does in a program, so that what is made here is what is looked
// for there. OUT holds a text of one line per kernel, "symbol range points ns", ended by an empty line, and then the
// image. Objects are kept in the folder CACHE: a build that changes no kernel compiles none.
#include "frontend/eager/Class.h"
#include "frontend/eager/prebuilt/CommonCalls.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include <cstdio>
#include <iostream>
#include <map>
#include <string>

using namespace tressel;

namespace {

/// The first of a call's classes that has a kernel, by the text of its call.
std::map<std::string, codegen::OpKernel> commonKernels(const std::string &cpu) {
  std::map<std::string, codegen::OpKernel> kernels;
  eager::forEachCommonCall([&](const op::OpInfo &op, std::span<const TensorType> operands, const TensorType &result,
                               const op::Attrs &attrs) {
    for (const eager::Classified &c : eager::classesOf(op, operands, result, attrs)) {
      const std::string text = c.call.str();
      if (kernels.contains(text))
        return;
      if (auto kernel = codegen::planOpKernel(c.call, cpu)) {
        kernels.emplace(text, std::move(*kernel));
        return;
      }
    }
  });
  return kernels;
}

} // namespace

int main(int argc, char **argv) try {
  if (argc != 4) {
    std::cerr << "usage: prebuild OUT LEVEL CACHE\n";
    return 2;
  }
  const std::string cpu = argv[2];
  std::vector<codegen::OpKernel> kernels;
  std::string index;
  for (const auto &[text, kernel] : commonKernels(cpu)) {
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
