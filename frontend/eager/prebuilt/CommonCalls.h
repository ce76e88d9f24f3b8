// Calls of common imperative ops, one or more of each layout class (Class.h): those whose kernels are compiled when
// Tressel is built. Ops and element types are those of the records' field `prebuilt`.
#pragma once

#include "ir/op/OpInfo.h"

#include <functional>
#include <span>

namespace tressel::eager {

bool isCommon(const op::OpInfo &op);

/// Receives operands of known sizes, complete attributes, and the type of the first result.
using CommonCall = std::function<void(const op::OpInfo &op, std::span<const TensorType> operands,
                                      const TensorType &result, const op::Attrs &attrs)>;
void forEachCommonCall(const CommonCall &visit);

} // namespace tressel::eager
