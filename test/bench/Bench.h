// The protocol of a benchmark arm: a process prepared for one row answers "measure ARM COUNT CASE\n" with a JSON list
// of samples, and "outputs ARM CASE FILE\n" with the number of elements that it has written to FILE: what the arm
// computes in this case, one tensor after the other, as f32 (CASE is 0 in rows of one case). run.py compares those of
// all arms before it asks for the first sample.
#pragma once

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace tressel::bench {

/// Seconds that one call of `f` takes.
inline double secondsOf(const std::function<void()> &f) {
  auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Elements of all results of an arm.
using Outputs = std::vector<float>;

/// What measures one sample in the row's unit; of a row over several cases, of one of them. `outputs` gives what is
/// computed by the same call that is measured; arms that compute no numbers have none.
class Arm {
public:
  template <typename F, typename G = std::nullptr_t>
  Arm(F measure, G outputs = nullptr) : measure_(perCase<double>(std::move(measure))) {
    if constexpr (!std::is_null_pointer_v<G>)
      outputs_ = perCase<Outputs>(std::move(outputs));
  }
  double operator()(size_t index) const { return measure_(index); }
  bool hasOutputs() const { return static_cast<bool>(outputs_); }
  Outputs outputs(size_t index) const { return outputs_(index); }

private:
  template <typename R, typename F> static std::function<R(size_t)> perCase(F f) {
    if constexpr (std::is_invocable_v<F &, size_t>)
      return f;
    else
      return [f = std::move(f)](size_t) mutable { return f(); };
  }
  std::function<double(size_t)> measure_;
  std::function<Outputs(size_t)> outputs_;
};

/// Arms of one row, by name.
using Arms = std::map<std::string, Arm>;

/// One operation of another library, prepared.
struct LibraryCall {
  std::function<double()> seconds; ///< of one call, on as many threads as OMP_NUM_THREADS says
  std::function<Outputs()> outputs;
};
/// The arm of a library's call for each case.
template <typename F> Arm libraryArm(F callOf) {
  return Arm([=](size_t index) -> double { return callOf(index).seconds(); },
             [=](size_t index) -> Outputs { return callOf(index).outputs(); });
}

/// Calls `f` for at least `seconds`; gives the seconds of one call.
inline double repeatFor(const std::function<void()> &f, double seconds) {
  auto start = std::chrono::steady_clock::now();
  for (int calls = 1;; ++calls) {
    f();
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (passed >= seconds)
      return passed / calls;
  }
}
/// Seconds of one call of `f`, of as many calls as take `atLeast` together, after some that are not counted: another
/// process ran before, and caches and the places of threads are to be as within a long loop.
inline double secondsPerCall(const std::function<void()> &f, double atLeast) {
  constexpr double warmUp = 20e-3;
  repeatFor(f, warmUp);
  return repeatFor(f, atLeast);
}

/// Answers requests until standard input ends. Exit status 2 for what is not a request, or for an arm that is not there
/// or has no outputs.
inline int serve(const Arms &arms) {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string verb, arm;
    in >> verb >> arm;
    auto found = arms.find(arm);
    if (found == arms.end()) {
      std::cerr << "no arm " << arm << " in this row\n";
      return 2;
    }
    int count = 0;
    size_t index = 0;
    if (verb == "measure" && in >> count >> index) {
      std::string out = "[";
      for (int i = 0; i < count; ++i) {
        char text[32];
        std::snprintf(text, sizeof text, "%s%.9g", i ? ", " : "", found->second(index));
        out += text;
      }
      std::cout << out << "]" << std::endl;
      continue;
    }
    std::string file;
    if (verb != "outputs" || !(in >> index >> file) || !found->second.hasOutputs()) {
      std::cerr << "cannot answer \"" << line << "\"\n";
      return 2;
    }
    const Outputs outputs = found->second.outputs(index);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char *>(outputs.data()),
               static_cast<std::streamsize>(outputs.size() * sizeof(float)));
    std::cout << outputs.size() << std::endl;
  }
  return 0;
}

} // namespace tressel::bench
