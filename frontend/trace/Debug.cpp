#include "frontend/trace/Debug.h"

#include "frontend/tensor/Machine.h"
#include "frontend/tensor/ThreadState.h"
#include "frontend/tensor/Fail.h"
#include "frontend/trace/Record.h"
#include "ir/op/CustomOp.h"
#include "tressel/runtime/Engine.h"
#include "tressel/runtime/Npy.h"
#include "tressel/runtime/Print.h"

#include <tressel/debug.h>
#include <tressel/jit.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace tressel {
namespace {

const op::OpInfo &debugOp(const char *name) { return *op::findCustomOp(name); }

} // namespace

void debug_print(Arg tensor, const std::string &label) {
  static const op::OpInfo &info = debugOp("debug.print");
  if (detail::tracing()) {
    const op::Attr attrs[] = {label};
    detail::recordList(info, {&tensor, 1}, attrs);
    return;
  }
  std::ostringstream text;
  text << (label.empty() ? "" : label + ": ") << tensor.as_tensor() << "\n";
  std::cerr << text.str();
}

void assert_true(Arg pred, const std::string &message) {
  static const op::OpInfo &info = debugOp("debug.assert");
  if (detail::tracing()) {
    const op::Attr attrs[] = {message};
    detail::recordList(info, {&pred, 1}, attrs);
    return;
  }
  const SourceLoc where = detail::toLoc(pred.where());
  op::Attrs attrs{message};
  Tensor t = pred.as_tensor();
  detail::inferResults(info, {&t, 1}, attrs, where); // checks the type
  if (!t.item<bool>(pred.where()))
    detail::fail<RuntimeError>(message, where, info.name);
}

void dump(const Tensor &tensor, const std::string &path, std::source_location where) {
  runtime::writeNpy(path, tensor.type(), tensor.data(where));
}

CheckNan::CheckNan() { ++detail::threadState.checkNanDepth; }
CheckNan::~CheckNan() { --detail::threadState.checkNanDepth; }

namespace detail {

bool checkingNanEverywhere() {
  static const bool everywhere = [] {
    const char *text = std::getenv("TRESSEL_CHECK_NAN");
    const std::string value = text ? text : "";
    if (!value.empty() && value != "0" && value != "1")
      std::cerr << "tressel: TRESSEL_CHECK_NAN is '" << value << "', which is neither 0 nor 1; nothing is checked\n";
    return value == "1";
  }();
  return everywhere;
}
bool checkingNan() { return threadState.checkNanDepth > 0 || checkingNanEverywhere(); }

static runtime::Statistics statistics(const Tensor &t, SourceLoc where) {
  runtime::Engine::global().wait(*t.impl()->storage, where, "checking values");
  return runtime::statisticsOf(elementsOf(*t.impl(), t.impl()->where, "statistics"), t.type());
}

bool isFinite(const Tensor &t, SourceLoc where) {
  if (!isFloat(t.dtype()))
    return true;
  const runtime::Statistics s = statistics(t, where);
  return s.numNan == 0 && s.numInf == 0;
}

void checkResults(const char *op, std::span<const Tensor> operands, std::span<const Tensor> results, SourceLoc where) {
  if (operands.empty())
    return; // an op without operands makes what the user asked for, NaN included
  for (size_t r = 0; r < results.size(); ++r) {
    if (isFinite(results[r], where))
      continue;
    const runtime::Statistics s = statistics(results[r], where);
    // A NaN or infinity among the operands is not this op's: an earlier op made it, or the user gave it.
    bool hadNan = false, hadInf = false;
    std::string given;
    for (size_t i = 0; i < operands.size(); ++i) {
      const runtime::Statistics o = statistics(operands[i], where);
      hadNan |= o.numNan > 0;
      hadInf |= o.numInf > 0;
      given += (given.empty() ? "" : "; ") + ("operand " + std::to_string(i)) + " " + operands[i].type().str() + ": " +
               o.str();
    }
    if (hadNan || (s.numNan == 0 && hadInf))
      continue;
    const bool nan = s.numNan > 0;
    std::string message = std::string("made ") + (nan ? "NaN" : "infinite") + " elements, the first at index " +
                          std::to_string(nan ? s.firstNan : s.firstInf) + ", in " +
                          (results.size() > 1 ? "result " + std::to_string(r) + " " : std::string()) +
                          results[r].type().str() + ": " + s.str();
    if (!given.empty())
      message += "; " + given;
    fail<RuntimeError>(std::move(message), where, op);
  }
}

} // namespace detail
} // namespace tressel
