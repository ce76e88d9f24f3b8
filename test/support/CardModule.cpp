#include "test/support/CardModule.h"

#include "tressel/runtime/Device.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/GpuCode.h"

#include "llvm/IR/Module.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace tressel::test {
namespace {

using namespace runtime;

constexpr int64_t kGuardBytes = 256;
constexpr std::byte kGuard{0x5c};

class CardModule final : public codegen::cuda::EmulatedModule {
public:
  CardModule(std::string ptx, std::string arch, std::string params)
      : machine_(openMachine("cuda")), device_(machine_->at({DeviceKind::Gpu, 0})), params_(std::move(params)) {
    GpuCode code{.arch = std::move(arch)};
    code.ptx = std::move(ptx);
    code_ = std::make_shared<std::vector<GpuCode>>(1, std::move(code));
  }

  int32_t run(const Launch &launch, int64_t begin, int64_t end, int64_t blocks) const override {
    if (begin != 0 || end != blocks || launch.bytes.size() != launch.buffers.size())
      throw Error("a card runs whole launches, with buffers of known sizes");
    std::string params = params_;
    if (params.empty()) {
      const std::string threads = "\"threads\":" + std::to_string(launch.threads);
      params = "{" + threads +
               (launch.cluster == 1
                    ? ""
                    : ",\"arch\":\"" + code_->front().arch + "\",\"cluster\":" + std::to_string(launch.cluster) +
                          ",\"portable\":{" + threads + ",\"blocks\":" + std::to_string(blocks) + "}") +
               "}";
    }
    const KernelDesc desc{.symbol = launch.symbol,
                          .provider = "cuda",
                          .target = KernelTarget::Gpu,
                          .params = std::move(params),
                          .range = blocks,
                          .grain = 1};
    const KernelCode code{.desc = &desc};
    const DeviceKernelRef kernel = device_.load({&code, 1}, code_).front();
    const Home host{{}, MemoryKind::Host}, card{device_.caps().device, MemoryKind::Device};
    std::vector<std::vector<std::byte>> copies; // each with its guard
    std::vector<Region> regions;
    const auto stream = device_.makeStream(StreamKind::Compute, "test");
    auto copy = [&](const Region &from, const Region &to) {
      const Region both[] = {from, to};
      stream->submit({.kind = DeviceCommandKind::Copy, .regions = both});
    };
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      const int64_t bytes = launch.bytes[i];
      auto &content = copies.emplace_back(static_cast<size_t>(bytes + kGuardBytes), kGuard);
      std::memcpy(content.data(), launch.buffers[i], static_cast<size_t>(bytes));
      regions.push_back({device_.allocate(bytes + kGuardBytes, MemoryKind::Device), bytes, Access::Read, card});
      copy({content.data(), bytes + kGuardBytes, Access::Read, host}, {regions.back().address, bytes + kGuardBytes, Access::Write, card});
    }
    const Event launched = stream->submit({.kind = DeviceCommandKind::Launch, .regions = regions, .kernel = kernel.get(), .desc = &desc, .scalars = launch.scalars});
    machine_->awaitAny({&launched, 1}, int64_t(60) * 1'000'000'000);
    const DeviceFailureRef failure = launched.state() == Semaphore::State::Reached ? nullptr : launched.semaphore->failure();
    std::string overrun;
    for (size_t i = 0; i < regions.size(); ++i) {
      if (!failure || failure->kind == FailureKind::Kernel)
        device_.read(copies[i].data(), regions[i].address, launch.bytes[i] + kGuardBytes);
      for (int64_t k = 0; k < kGuardBytes; ++k)
        if (copies[i][static_cast<size_t>(launch.bytes[i] + k)] != kGuard)
          overrun = "kernel '" + launch.symbol + "' writes behind buffer " + std::to_string(i);
      std::memcpy(launch.buffers[i], copies[i].data(), static_cast<size_t>(launch.bytes[i]));
      device_.release(regions[i].address);
    }
    if (launched.state() == Semaphore::State::Pending)
      throw Error("the card has not finished within a minute");
    if (failure && failure->kind != FailureKind::Kernel)
      throw Error(failure->message);
    if (!overrun.empty())
      throw Error(overrun);
    return failure ? kKernelIndexOutOfRange : kKernelOk;
  }

private:
  std::shared_ptr<Machine> machine_;
  Device &device_;
  const std::string params_;
  std::shared_ptr<const std::vector<GpuCode>> code_;
};

} // namespace

bool onCard() {
  const char *on = std::getenv("TRESSEL_TEST_ON");
  return on && std::strcmp(on, "cuda") == 0;
}

std::string_view runnableArch(std::string_view arch) {
  if (!onCard())
    return arch;
  auto number = [](std::string_view name) { return std::atoi(std::string(name.substr(3)).c_str()); };
  const std::vector<GpuCard> cards = gpuCards();
  std::string_view best = codegen::cuda::architectures().front().name;
  for (const codegen::cuda::Arch &known : codegen::cuda::architectures())
    if (!cards.empty() && number(known.name) <= std::min(number(arch), number(cards.front().architecture)))
      best = known.name;
  return best;
}

std::string_view ownArch() {
  const std::vector<GpuCard> cards = onCard() ? gpuCards() : std::vector<GpuCard>();
  if (cards.empty())
    return {};
  return cards.front().architecture == "sm_90" ? "sm_90a" : cards.front().architecture == "sm_100" ? "sm_100a" : "";
}

std::shared_ptr<codegen::cuda::EmulatedModule> onCard(std::string ptx, std::string arch, std::string params) {
  return std::make_shared<CardModule>(std::move(ptx), std::move(arch), std::move(params));
}

std::shared_ptr<codegen::cuda::EmulatedModule> runnable(llvm::Module &module, const codegen::cuda::Target &target,
                                                        std::string params) {
  if (onCard())
    return std::make_shared<CardModule>(target.ptx(module), std::string(target.arch().name), std::move(params));
  return codegen::cuda::EmulatedModule::create(module);
}

} // namespace tressel::test
