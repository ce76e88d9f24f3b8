// A hash per recorded op, to tell whether recording a function again gives the same program.
#pragma once

#include "frontend/trace/Recorder.h"

#include <unordered_map>
#include <vector>

namespace tressel::detail {

class Fingerprint {
public:
  void op(const op::OpInfo &info, std::span<const Tensor> inputs, const op::Attrs &attrs, SourceLoc where);
  void read(const VariableImpl &variable, SourceLoc where);
  void assign(const VariableImpl &variable, const Tensor &value, SourceLoc where);
  void result(const Tensor &t);
  void control(const ControlCall &call);
  /// Ignores what is recorded until endGradient(): a gradient depends only on what was noted before.
  void beginGradient(std::span<const Tensor> results, std::span<const Tensor> cotangents,
                     std::span<const Tensor> inputs, SourceLoc where);
  void endGradient() { --gradients_; }

  /// The first difference, in words; empty if both are equal.
  std::string differsFrom(const Fingerprint &earlier) const;

private:
  struct Entry {
    uint64_t hash = 0;
    const char *what = "";
    SourceLoc where;
    uint32_t firstPart = 0, numOperands = 0; ///< of an op: parts_ of its operands, then of its attributes
    const op::OpInfo *info = nullptr;
  };
  /// An operand or attribute, for messages: its identity and, if it is a number, its value.
  struct Part {
    uint64_t id = 0;
    double number = 0;
    enum class Kind : uint8_t { Traced, Constant, Number, Other } kind = Kind::Other;
    TensorType type = {};
    std::string str() const;
  };
  static Part partOf(const Tensor &t);
  static Part partOf(const op::Attr &attr);
  std::string detailsOf(const Entry &now, const Fingerprint &earlier, const Entry &then) const;

  std::vector<Entry> entries_;
  std::vector<Part> parts_;
  void note(Entry entry) {
    if (gradients_ == 0)
      entries_.push_back(entry);
  }
  int gradients_ = 0; ///< begun and not ended
};

/// Records types and the fingerprint only: far cheaper than a trace. Numbers values as a trace does.
class FingerprintRecorder : public Recorder {
public:
  Tensor input(const TensorType &type, SourceLoc where) { return makeValue(type, nullptr, where); }
  void op(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const TensorType> types,
          const op::Attrs &attrs, SourceLoc where, std::span<Tensor> results) override;
  Tensor read(const std::shared_ptr<VariableImpl> &variable, SourceLoc where) override;
  void assign(const std::shared_ptr<VariableImpl> &variable, const Tensor &value, SourceLoc where) override;

  bool followsTypes() const override { return true; }

  Fingerprint fingerprint;

protected:
  Fingerprint *fingerprintOf() override { return &fingerprint; }
  void beginControl(const ControlCall &call) override { fingerprint.control(call); }

private:
  Tensor &state(const std::shared_ptr<VariableImpl> &variable, SourceLoc where);
  std::unordered_map<const VariableImpl *, Tensor> states_;
};

} // namespace tressel::detail
