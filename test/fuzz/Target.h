// What the fuzz programs of all formats share. A target defines libFuzzer's entry, and a mutator of its own where bytes
// alone would seldom get past the format's first check:
//
//   extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
//     return tressel::fuzz::survives([&] { parse(data, size); });
//   }
//
// Each target is built twice: linked with Seeded.cpp, as a program that tries a fixed number of changed inputs from a
// seed (in every build), and with libFuzzer (the preset fuzz).
#pragma once

#include "tressel/runtime/Error.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/// Changes `data` in place; it may grow up to `maxSize`. Returns the new size. Weak: not every target has one.
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed);
/// A change of bytes that knows nothing of their meaning, for mutators to use: libFuzzer's, or that of Seeded.cpp.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);
}

namespace tressel::fuzz {

/// Runs `fn` over an input. An input may be refused by any tressel::Error but an InternalError; everything else that is
/// thrown is a bug, and aborts. Returns 0, as libFuzzer wants it.
template <typename Fn> int survives(Fn fn) {
  auto bug = [](const char *what, const char *text) {
    std::fprintf(stderr, "fuzz: %s: %s\n", what, text);
    std::abort();
  };
  try {
    fn();
  } catch (const InternalError &e) {
    bug("a bug, by its own account", e.what());
  } catch (const Error &e) {
    if (std::string_view(e.what()).empty())
      bug("refused", "without a word");
  } catch (const std::exception &e) {
    bug("an exception that users would not understand", e.what());
  }
  return 0;
}

/// A file with these bytes, in memory where the system has a folder for that. One per process and suffix, written anew
/// by each call and removed at exit. Its name ends in `suffix`.
std::string fileOf(const uint8_t *data, size_t size, const char *suffix);

} // namespace tressel::fuzz
