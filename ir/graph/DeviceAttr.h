// The device that computes an op of a graph, and the op that transfers a value to another memory.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "tressel/runtime/Schedule.h"

#include <optional>

namespace tressel::graph {

/// On an op: the device that computes it, by its name ("cpu", "gpu0"). Without it the compiler chooses.
inline constexpr llvm::StringLiteral kDeviceAttr = "tressel.device";
/// On an argument or result of @main: the caller promises that its memory is pinned.
inline constexpr llvm::StringLiteral kPinnedAttr = "tressel.pinned";
/// On an argument or result of @main: its home, the device in whose memory the caller has it, by name; without it, the
/// host. On a result, kComputed keeps it where it is computed; insert-transfers replaces it by that device's name. On
/// both values of a state, the old and the next, kComputed lets place-clusters choose the home.
inline constexpr llvm::StringLiteral kHomeAttr = "tressel.home";
inline constexpr llvm::StringLiteral kComputed = "computed";

inline constexpr runtime::DeviceRef kHost{};

/// Nothing if the name is no device's.
std::optional<runtime::DeviceRef> parseDevice(llvm::StringRef name);
/// The device that an op is annotated with; nothing if it has no valid annotation. Ops that every rank of a mesh
/// computes (Mesh.h) run on devices that are all alike, so the first accelerator represents them.
std::optional<runtime::DeviceRef> deviceOf(mlir::Operation *op);
void setDevice(mlir::Operation *op, runtime::DeviceRef device);
/// `made` replaces `op`, or a part of it: it gets the op's device, stage and segment (Segment.h).
void copyAnnotations(mlir::Operation *op, mlir::Operation *made);

/// The home of an argument or result of @main; nothing for a result that stays where it is computed.
runtime::DeviceRef homeOfArgument(mlir::Operation *main, unsigned i);
std::optional<runtime::DeviceRef> homeOfResult(mlir::Operation *main, unsigned i);

/// Whether it is the op `to`, whose result is the operand in the memory of another device.
bool isTransfer(mlir::Operation *op);
runtime::DeviceRef destinationOf(mlir::Operation *transfer);
mlir::Value createTransfer(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, runtime::DeviceRef device);

} // namespace tressel::graph
