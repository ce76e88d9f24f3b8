// Where the ops of a graph are computed, and the op that moves a value to another memory.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "tressel/runtime/Schedule.h"

#include <optional>

namespace tressel::graph {

/// On an op: the device that computes it, by the name that machines give it ("cpu", "gpu0"). Without it the compiler
/// chooses.
inline constexpr llvm::StringLiteral kDeviceAttr = "tressel.device";
/// On an argument or result of @main: the caller promises that its memory is pinned.
inline constexpr llvm::StringLiteral kPinnedAttr = "tressel.pinned";
/// On an argument or result of @main: the device in whose memory the caller has it, by name; without it, the host. A
/// result may say kComputed: it stays where it is computed, and insert-transfers puts in the name of that device. Both
/// values of a state, the old one and the next, may say so too: place-clusters puts in where it lies from step to step.
inline constexpr llvm::StringLiteral kHomeAttr = "tressel.home";
inline constexpr llvm::StringLiteral kComputed = "computed";

inline constexpr runtime::DeviceRef kHost{};

/// Nothing for what is no device's name.
std::optional<runtime::DeviceRef> parseDevice(llvm::StringRef name);
/// The annotation of an op; nothing if it has none, or none that names a device. What every rank of a mesh computes
/// (Mesh.h) is computed by devices that are all alike: the first accelerator stands for them.
std::optional<runtime::DeviceRef> deviceOf(mlir::Operation *op);
void setDevice(mlir::Operation *op, runtime::DeviceRef device);
/// `made` stands for `op`, or for a part of what it does: it is computed in the same place, and belongs to the same
/// part of the program (Segment.h).
void copyAnnotations(mlir::Operation *op, mlir::Operation *made);

/// Where an argument of @main, or a result, is at home; nothing for a result that stays where it is computed.
runtime::DeviceRef homeOfArgument(mlir::Operation *main, unsigned i);
std::optional<runtime::DeviceRef> homeOfResult(mlir::Operation *main, unsigned i);

/// The op `to`: its result is the operand, in the memory of another device.
bool isTransfer(mlir::Operation *op);
runtime::DeviceRef destinationOf(mlir::Operation *transfer);
mlir::Value createTransfer(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, runtime::DeviceRef device);

} // namespace tressel::graph
