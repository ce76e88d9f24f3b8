#include "codegen/builtin/Provider.h"

#include "runtime/kernels/Kernels.h"

namespace tressel::kernels {

namespace {

class Provider final : public passes::KernelProvider {
public:
  llvm::StringRef name() const override { return "builtin"; }
  graph::KernelTarget target() const override { return graph::KernelTarget::HostLibrary; }

  std::optional<passes::Bid> bid(const passes::Candidate &candidate,
                                 llvm::ArrayRef<bool> parameterOnly) const override {
    if (auto bid = bidForAttention(candidate))
      return bid;
    const auto root = codegen::binaryRootOf(candidate);
    if (!root)
      return std::nullopt;
    if (auto bid = bidForConvolution(*root, candidate, parameterOnly))
      return bid;
    return bidForProduct(*root, candidate, parameterOnly);
  }
};

} // namespace

Element elementOf(DType type) { return type == f16 ? Element::F16 : type == bf16 ? Element::BF16 : Element::F32; }

std::unique_ptr<passes::KernelProvider> makeProvider() {
  registerKernels();
  return std::make_unique<Provider>();
}

} // namespace tressel::kernels
