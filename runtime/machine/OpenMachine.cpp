// Opens machines by name, and finds the machine models for plans.
#include "runtime/devices/CudaLibrary.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <charconv>
#include "tressel/runtime/Simulated.h"

namespace tressel::runtime {
namespace {

/// The best architecture that code is generated for and the card supports.
std::string architectureFor(const GpuCard &card) {
  for (const char *known : {"sm_120", "sm_100", "sm_90", "sm_80"})
    if (std::stoi(known + 3) <= std::stoi(card.architecture.substr(3)))
      return known;
  throwError<Error>("the GPU ", card.name, " (", card.architecture, ") is older than sm_80, the oldest that code is generated for");
}

/// The numbers in the list of a name: "0,0,2" of "cuda:0,0,2". Empty: all cards.
std::vector<int> cardsNamed(std::string_view list, size_t present) {
  std::vector<int> cards;
  constexpr size_t kMost = 64;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    int card = -1;
    const auto [end, error] = std::from_chars(list.data(), list.data() + comma, card);
    if (error != std::errc() || end != list.data() + comma || card < 0 || cards.size() == kMost || comma + 1 == list.size())
      throwError<Error>("machine 'cuda:' names cards like \"cuda:0,1\", not '", list, "'");
    if (static_cast<size_t>(card) >= present)
      throwError<Error>("machine 'cuda' has no card ", card, "; there are ", present);
    cards.push_back(card);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return cards;
}

/// A model of the host and of typical cards of their architectures, with the memory that the cards have. Accelerators
/// on one card share its memory, and copies between them do not leave it.
MachineModel modelOf(const std::vector<GpuCard> &all, const std::string &architecture, std::vector<int> named) {
  MachineModel model;
  if (named.empty())
    for (size_t i = 0; i < all.size(); ++i)
      named.push_back(static_cast<int>(i));
  std::vector<GpuCard> cards;
  for (int card : named) {
    cards.push_back(all[static_cast<size_t>(card)]);
    cards.back().memoryBytes /= std::ranges::count(named, card);
  }
  for (uint16_t i = 0; i < cards.size(); ++i) {
    const std::string mine = architecture.empty() ? architectureFor(cards[i]) : architecture;
    const MachineModel typical = machineOfArchitecture(mine);
    if (model.devices.empty()) {
      model = typical;
      model.devices.clear();
      model.devices.push_back(hostMachine().devices.front());
      model.links.clear();
      model.routes.clear();
    }
    const auto firstLink = static_cast<uint32_t>(model.links.size());
    model.links.insert(model.links.end(), typical.links.begin(), typical.links.end());
    const DeviceRef gpu{DeviceKind::Gpu, i};
    for (RouteModel route : typical.routes) {
      (route.from.kind == DeviceKind::Gpu ? route.from : route.to) = gpu;
      for (uint32_t &link : route.links)
        link += firstLink;
      model.routes.push_back(std::move(route));
    }
    DeviceModel device = typical.devices.back();
    device.name = nameOf(gpu);
    device.device = gpu;
    device.memoryBytes = cards[i].memoryBytes;
    device.architecture = mine;
    for (uint16_t k = 0; k < i; ++k)
      if (named[k] == named[i]) {
        const DeviceRef other{DeviceKind::Gpu, k};
        const auto link = static_cast<uint32_t>(model.links.size());
        model.links.push_back({concat(nameOf(other), "-", device.name), device.bytesPerSecond / 2, 2e-6});
        model.routes.push_back({.from = gpu, .to = other, .links = {link}});
        model.routes.push_back({.from = other, .to = gpu, .links = {link}});
      }
    model.devices.push_back(std::move(device));
  }
  model.name = "cuda";
  return model;
}

} // namespace

std::shared_ptr<Machine> openMachine(std::string_view name, const MachineRequest &request) {
  auto refuse = [&](const auto &...why) {
    throw Error(Error::Details{
        .message = concat("machine '", name, "' ", why...),
        .hint = "\"cpu\", \"cpu:2\" for its cores as two accelerators, \"cuda\" with an NVIDIA GPU, and "
                "\"sim:2gpu-pcie3\" or others that are simulated; {.gpu = \"sm_90\"} emulates kernels of such GPUs"});
  };
  const bool isCuda = name == "cuda" || name.starts_with("cuda:");
  const bool isProcessor = name == "cpu" || name.starts_with("cpu:");
  if ((isProcessor || isCuda) && !request.computes)
    refuse("is not simulated: it cannot keep the time without computing");
  if (isProcessor && !request.architecture.empty())
    refuse("has no GPU for kernels of '", request.architecture, "'");
  if (!request.architecture.empty())
    machineOfArchitecture(request.architecture); // throws for an unknown architecture
  if (name == "cpu")
    return nullptr;
  if (isProcessor)
    return makeProcessorParts(machineNamed(name));
  if (isCuda) {
    const CudaLibrary &library = cudaLibrary();
    const std::vector<GpuCard> cards = library.cards(nullptr);
    MachineRequest some = request;
    if (cards.empty())
      some.cards.clear(); // opening the machine reports what is missing
    else if (name.size() > 5)
      some.cards = cardsNamed(name.substr(5), cards.size());
    for (int card : some.cards)
      if (card < 0 || static_cast<size_t>(card) >= cards.size())
        throwError<Error>("machine 'cuda' has no card ", card, "; there are ", cards.size());
    return library.open(some, modelOf(cards, request.architecture, some.cards));
  }
  MachineModel model = machineNamed(name);
  for (DeviceModel &device : model.devices)
    if (device.device.kind == DeviceKind::Gpu)
      device.architecture = request.architecture;
  return SimulatedMachine::create(std::move(model), {.computes = request.computes});
}

} // namespace tressel::runtime
