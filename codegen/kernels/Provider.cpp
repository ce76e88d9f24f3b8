#include "codegen/kernels/Provider.h"

#include "runtime/kernels/Kernels.h"

namespace tressel::kernels {

namespace {

class Provider final : public passes::KernelProvider {
public:
  llvm::StringRef name() const override { return "kernels"; }

  std::optional<passes::Bid> bid(const passes::Candidate &candidate, llvm::ArrayRef<bool> parameterOnly) const override {
    if (const auto root = codegen::binaryRootOf(candidate))
      return bidForProduct(*root, candidate, parameterOnly);
    return std::nullopt;
  }
};

} // namespace

std::unique_ptr<passes::KernelProvider> makeProvider() {
  registerKernels();
  return std::make_unique<Provider>();
}

} // namespace tressel::kernels
