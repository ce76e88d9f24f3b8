// The stand-in driver as tests find it: the libcuda.so.1 of this process, if it is that one.
#pragma once

#include "driver/Control.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace tressel::standin {

/// Null: the process has another driver, or none.
inline const Control *control() {
  static const Control *const found = [] {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? static_cast<const Control *>(dlsym(library, "tressel_standin_control")) : nullptr;
  }();
  return found;
}
/// For programs that serve with the stand-in driver alone: where the process has another one, or none, it starts again with that of the build which the program is in
/// (its folder is beside bin/). `options` are those of Control::configure, for a process that was not started with some.
inline const Control &requireStandIn(char **argv, const char *options) {
  const char *const kTried = "TRESSEL_STANDIN_TRIED";
  setenv("TRESSEL_STANDIN", options, 0);
  if (!control() && !std::getenv(kTried)) {
    const auto program = std::filesystem::read_symlink("/proc/self/exe");
    const char *path = std::getenv("LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH", ((program.parent_path().parent_path() / "standin").string() + (path ? std::string(":") + path : "")).c_str(), 1);
    setenv(kTried, "1", 1);
    execv("/proc/self/exe", argv);
  }
  if (!control()) {
    std::fprintf(stderr, "%s: the stand-in driver is not there (standin/libcuda.so.1 beside the folder bin of the build)\n", argv[0]);
    std::exit(2);
  }
  return *control();
}
/// All that was found, a line each; empty if nothing was.
inline std::string findings(const Control &control) {
  std::string text(1 << 16, '\0');
  control.findings(text.data(), text.size());
  return text.c_str();
}

} // namespace tressel::standin
