// What tests of kernels share that the stand-in cuDNN computes.
#pragma once

#include "CudnnControl.h"
#include "LibraryTests.h"

namespace tressel::runtime {

inline standin::CudnnControl &library() {
  static auto &control = controlOf<standin::CudnnControl>("libcudnn.so.9", "tressel_standin_cudnn");
  return control;
}

class CudnnTest : public ::testing::Test {
protected:
  void SetUp() override {
    resetDriver();
    const uint64_t descriptors = library().descriptors;
    library() = {};
    library().descriptors = descriptors;
  }
  void TearDown() override {
    EXPECT_EQ(standin::findings(driver()), "") << library().lastRefusal;
    EXPECT_EQ(library().descriptors, 0u); // those of plans and packs are given back
  }
};

/// What is said of some launches in a process of its own, which ends.
[[noreturn]] inline void reportChoice(const std::string &wrong) {
  std::fprintf(stderr, "%sheuristics %d executed %d engine %d %s\n", wrong.c_str(), int(library().heuristics),
               int(library().executed), library().lastEngine, standin::findings(driver()).c_str());
  _exit(wrong.empty() && standin::findings(driver()).empty() ? 0 : 1);
}

/// Functions of the backend API, as the library has them.
struct CudnnFunctions {
  CudnnFunctions() {
    void *opened = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    auto find = [&]<typename Fn>(Fn *&fn, const char *name) { fn = reinterpret_cast<Fn *>(dlsym(opened, name)); };
    find(create, "cudnnBackendCreateDescriptor"), find(destroy, "cudnnBackendDestroyDescriptor");
    find(finalize, "cudnnBackendFinalize"), find(set, "cudnnBackendSetAttribute");
    find(get, "cudnnBackendGetAttribute");
  }
  static void expect(int status, int expected, const char *why) {
    EXPECT_EQ(status, expected) << why;
    EXPECT_STREQ(library().lastRefusal, why);
  }
  int (*create)(int, void **), (*destroy)(void *), (*finalize)(void *);
  int (*set)(void *, int, int, int64_t, const void *), (*get)(void *, int, int, int64_t, int64_t *, void *);
};

} // namespace tressel::runtime
