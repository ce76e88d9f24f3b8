// A trace as a module of the graph dialect, and its compilation. No MLIR in this header: the pool of contexts, the
// builder and the module are behind it.
#pragma once

#include "frontend/Program.h"
#include "frontend/Record.h"

#include <memory>
#include <string>
#include <vector>

namespace tressel::runtime {
class Package;
}

namespace tressel::detail {

/// What became of a value that the traced function returned.
struct TraceResult {
  enum class Kind : uint8_t { Output, Input, Constant };
  Kind kind = Kind::Output;
  size_t index = 0; ///< of the output or input
  Tensor constant;  ///< a tensor from outside that was returned as it is
};

struct Traced {
  std::shared_ptr<Program> program;      ///< null when it was recorded only
  std::vector<TraceResult> results;      ///< one per returned tensor
  /// Variables that are assigned: their value is a further input each, after the arguments, and a further output each.
  std::vector<std::shared_ptr<VariableImpl>> updated;
  std::string text;                      ///< the graph, without locations; only where asked for
  size_t numOps = 0;
  double traceSeconds = 0, compileSeconds = 0;
};

class TraceRecorder : public Recorder {
public:
  TraceRecorder();
  ~TraceRecorder() override;

  /// Inputs come before everything else.
  Tensor input(const TensorType &type, const std::string &name, SourceLoc where);
  Tensor op(const op::OpInfo &info, std::span<const Tensor> inputs, const TensorType &result, const op::Attrs &attrs,
            SourceLoc where) override;
  Tensor read(const std::shared_ptr<VariableImpl> &variable, SourceLoc where) override;
  void assign(const std::shared_ptr<VariableImpl> &variable, const Tensor &value, SourceLoc where) override;

  struct FinishOptions {
    std::string name = "main";
    bool compile = true;
    bool text = false;
    bool deterministic = false;
    std::vector<std::string> outputNames = {}; ///< one per result; empty: out0, out1, ...
    std::string packagePath = {};              ///< not empty: a package is written there instead
    std::vector<std::string> *graphText = nullptr;
  };
  /// Ends the trace. Throws what the compiler finds.
  Traced finish(std::span<const Tensor> results, const FinishOptions &options);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace tressel::detail
