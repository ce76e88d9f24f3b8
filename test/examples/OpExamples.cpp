// Runs the examples of the op records and puts their results into the page of all ops.
//   op-examples PAGE OUT
// PAGE is what the generator makes of the records: a line `@result add` stands where the result of that example
// belongs. Exit status 1, and a message per op, when a record has no example or its example fails.
#include "test/examples/OpExamples.h"

#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

using namespace tressel;

int main(int argc, char **argv) {
  if (argc != 3) {
    std::cerr << "usage: op-examples PAGE OUT\n";
    return 2;
  }
  int failures = 0;
  std::map<std::string, std::string> results;
  for (const OpExample &example : opExamples()) {
    if (!example.run) {
      std::cerr << example.op << ": its record has no example\n";
      ++failures;
      continue;
    }
    try {
      std::ostringstream text;
      example.run(text);
      results[example.op] = text.str();
    } catch (const std::exception &e) {
      std::cerr << example.op << ": its example fails: " << e.what() << "\n";
      ++failures;
    }
  }

  std::ifstream page(argv[1]);
  std::ostringstream filled;
  constexpr std::string_view mark = "@result ";
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with(mark))
      filled << results[line.substr(mark.size())];
    else
      filled << line << "\n";
  }
  std::ofstream(argv[2]) << filled.str();
  if (!page.eof() || filled.str().empty()) {
    std::cerr << argv[1] << ": cannot be read\n";
    ++failures;
  }
  return failures ? 1 : 0;
}
