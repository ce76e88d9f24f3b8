// Losses over classes.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using Ints = std::vector<int64_t>;

/// The loss of log probabilities [batch, classes, ...] against labels [batch, ...], with an optional weight per class.
Value classLoss(N &n, const Value &logProbs, const Value &labels, int weightInput) {
  const std::string reduction = n.stringAttr("reduction", "mean");
  // Without the attribute every label counts: a number that is no class ignores none.
  const int64_t ignored = n.intAttr("ignore_index", -(int64_t(1) << 40));
  const NamedAttrs attrs{{"reduction", reduction}, {"ignore_index", ignored}};
  std::vector<Value> operands{logProbs, labels};
  if (n.has(weightInput))
    operands.push_back(n.in(weightInput));
  return n.emit("nll_loss", operands, attrs);
}

void negativeLogLikelihood(N &n) {
  n.requireFloat(n.in(0));
  n.out(0, classLoss(n, n.in(0), n.in(1), 2));
}
void softmaxCrossEntropy(N &n) {
  n.requireFloat(n.in(0));
  if (n.in(0).rank() < 2)
    n.fail("needs scores [batch, classes, ...], not " + n.in(0).type.str());
  Value logProbs = n.emit("log_softmax", {n.in(0)}, {{"axis", int64_t(1)}});
  n.out(0, classLoss(n, logProbs, n.in(1), 2));
  n.out(1, logProbs);
}

constexpr OpEntry kTable[] = {{"NegativeLogLikelihoodLoss", 12, negativeLogLikelihood},
                              {"SoftmaxCrossEntropyLoss", 12, softmaxCrossEntropy}};
} // namespace

std::span<const OpEntry> lossOps() { return kTable; }

} // namespace tressel::onnx
