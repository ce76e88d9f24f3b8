// Looking into programs while they run: printing, checks, the first NaN, files to look at. docs/debugging.md is the
// guide.
#pragma once

#include <tressel/arg.h>
#include <tressel/jit.h>

#include <source_location>
#include <string>
#include <vector>

namespace tressel {

/// Prints a tensor on standard error, as `label: [1., 2.] f32[2]`. Eagerly it waits and prints at once; in a trace the
/// program prints each time it runs, in the order of the calls. It is never removed.
void debug_print(Arg tensor, const std::string &label = "");

/// Fails with `message` when `pred`, one bool, is false. Eagerly it waits and throws RuntimeError at once; in a trace
/// the program fails when it runs, which everything that it returns or assigns carries. It is never removed. Throws
/// ShapeError when pred is not one bool.
void assert_true(Arg pred, const std::string &message);

/// While one is alive, the results of ops and jitted functions called in this thread are searched for NaN and infinite
/// elements; TRESSEL_CHECK_NAN=1 in the environment does so everywhere. Each call waits for its results. The first op
/// that makes a NaN of operands without one, or an infinity of finite operands, is a RuntimeError with its line and a
/// summary of its operands. A jitted function is run a second time, op by op, to find an op whose result the program
/// does not return.
class CheckNan {
public:
  CheckNan();
  ~CheckNan();
  CheckNan(const CheckNan &) = delete;
  CheckNan &operator=(const CheckNan &) = delete;
};

/// Writes the elements as a .npy file. Throws TraceError in a trace, and RuntimeError when the file cannot be written.
void dump(const Tensor &tensor, const std::string &path, std::source_location where = std::source_location::current());

/// Records the function for these arguments, and writes into the folder `path`, which is made: graph.mlir, what was
/// recorded, with lines; schedule.mlir, what it was compiled to; kernels.ll, the generated code; and argN.npy and
/// resultN.npy, the tensors of one call.
template <typename Fn, typename R, typename... P, typename... Args>
void dump(const Jitted<Fn, R, std::tuple<P...>> &jitted, const std::string &path, Args &&...args) {
  jitted.dump(path, std::forward<Args>(args)...);
}

namespace detail {
void drawGraph(const std::string &graph, const std::string &path);
}
/// Records the function for these arguments, and draws what depends on what: FILE.svg, FILE.dot for Graphviz, or FILE.txt,
/// in which ops of one line can run at once. Nothing is compiled. Throws Error for other names, for more than some hundred
/// ops as .svg, and when the file cannot be written.
template <typename Fn, typename R, typename... P, typename... Args>
void draw_graph(const Jitted<Fn, R, std::tuple<P...>> &jitted, const std::string &path, Args &&...args) {
  detail::drawGraph(jitted.graph(std::forward<Args>(args)...), path);
}

} // namespace tressel
