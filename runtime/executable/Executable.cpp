#include "tressel/runtime/Executable.h"

#include "runtime/types/Concat.h"
#include "ExecutableImpl.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/VerifySchedule.h"

#include <cstring>

namespace tressel::runtime {

void rejectUnsupported(const Schedule &schedule) {
  for (const StreamDesc &stream : schedule.streams)
    if (stream.device.kind != DeviceKind::Cpu)
      throwError<InputError>("schedule '", schedule.name, "': stream '", stream.name,
                             "' is for a GPU; a context without a machine runs on the CPU");
  if (!schedule.mesh.empty())
    throwError<InputError>("schedule '", schedule.name, "' is for the ranks of a mesh, which this runtime cannot run");
  DeviceRef device;
  if (const std::string *name = boundElsewhere(schedule, device))
    throwError<InputError>("schedule '", schedule.name, "': '", *name, "' lies in the memory of ", nameOf(device),
                           "; a context without a machine runs on the CPU");
  std::vector<const CommandList *> lists{&schedule.prepare, &schedule.step};
  for (const CommandList &body : schedule.bodies)
    lists.push_back(&body);
  for (const CommandList *list : lists)
    for (const Command &command : list->commands)
      if (command.kind == CommandKind::HostCall || command.kind == CommandKind::Collective)
        throwError<InputError>("schedule '", schedule.name,
                               "' holds host calls or collectives, which a context without a machine cannot run");
}

static LoadedKernel resolve(const KernelDesc &desc, const Image *image, const ProgramCode &code) {
  if (code.kernels)
    if (LoadedKernel kernel = code.kernels(desc); kernel.fn)
      return kernel;
  if (desc.target == KernelTarget::Host) {
    LoadedKernel kernel;
    kernel.fn = image ? reinterpret_cast<KernelFn>(image->find(desc.symbol)) : nullptr;
    if (!kernel.fn)
      throwError<InputError>("kernel '", desc.symbol, "' is not in the code image");
    return kernel;
  }
  if (isForGpu(desc.target) && code.gpu)
    return {}; // the device reads the code itself
  if (isForGpu(desc.target))
    throwError<InputError>("kernel '", desc.symbol, "' is for a GPU, and the program was opened without its code for GPUs");
  KernelFactory factory = findKernelProvider(desc.provider);
  if (!factory)
    throwError<InputError>("kernel '", desc.symbol, "' needs the library '", desc.provider,
                           "': it is no part of this program, and ", kernelLibrary(desc.provider),
                           ".so is not beside libtressel_runtime.so");
  LoadedKernel kernel = factory(desc);
  if (!kernel.fn)
    throwError<InputError>("the library '", desc.provider, "' has no kernel for '", desc.symbol, "'");
  return kernel;
}

std::shared_ptr<const Executable> Executable::create(Schedule schedule, std::span<const std::byte> image,
                                                     std::shared_ptr<const std::vector<std::byte>> constants,
                                                     const ProgramCode &code) {
  std::span<const std::byte> bytes;
  if (constants)
    bytes = *constants;
  return create(std::move(schedule), image, bytes, std::move(constants), code);
}

std::shared_ptr<const Executable> Executable::create(Schedule schedule, std::span<const std::byte> image,
                                                     std::span<const std::byte> constants,
                                                     std::shared_ptr<const void> owner, const ProgramCode &code) {
  if (const auto violations = verifySchedule(schedule); !violations.empty())
    throwError<InputError>("schedule '", schedule.name, "' is not safe to run: ", violations[0].message,
                           violations.size() > 1 ? concat(" (and ", violations.size() - 1, " more)") : "");
  return ExecutableImpl::createVerified(std::move(schedule), image, constants, std::move(owner), code);
}

std::shared_ptr<const Executable> ExecutableImpl::createVerified(Schedule schedule, std::span<const std::byte> image,
                                                                 std::span<const std::byte> constants,
                                                                 std::shared_ptr<const void> owner,
                                                                 const ProgramCode &code) {
  for (size_t i = 0; i < schedule.constants.size(); ++i) {
    const ConstantDesc &c = schedule.constants[i];
    if (c.offset + c.bytes > static_cast<int64_t>(constants.size()))
      throwError<InputError>("constant ", i, " leaves the weights of ", constants.size(), " bytes");
  }

  auto executable = std::make_shared<ExecutableImpl>();
  executable->gpu = code.gpu;
  if (!image.empty())
    executable->image = Image::load(image);
  for (const KernelDesc &desc : schedule.kernels) {
    executable->kernels.push_back(resolve(desc, executable->image.get(), code));
    KernelFn epilogue = nullptr;
    if (!desc.epilogue.empty()) {
      epilogue = executable->image ? reinterpret_cast<KernelFn>(executable->image->find(desc.epilogue)) : nullptr;
      if (!epilogue)
        throwError<InputError>("kernel '", desc.epilogue, "' is not in the code image");
    }
    executable->epilogues.push_back(epilogue);
  }
  if (reinterpret_cast<uintptr_t>(constants.data()) % 64 == 0) {
    executable->constants = constants.data();
    executable->constantsOwner = std::move(owner);
  } else {
    executable->alignedConstants = Storage::allocate(static_cast<int64_t>(constants.size()));
    std::memcpy(executable->alignedConstants->data(), constants.data(), constants.size());
    executable->constants = static_cast<const std::byte *>(executable->alignedConstants->data());
  }
  executable->setSchedule(std::move(schedule));
  return executable;
}

} // namespace tressel::runtime
