// The dialect: registration and types.
#include "ir/sched/Sched.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "ir/sched/SchedDialect.cpp.inc"
#include "ir/sched/SchedEnums.cpp.inc"
#include "ir/sched/SchedInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/sched/SchedTypes.cpp.inc"

namespace tressel::sched {

void SchedDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/sched/SchedTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/sched/SchedOps.cpp.inc"
      >();
}

void registerDialect(DialectRegistry &registry) { registry.insert<SchedDialect>(); }

} // namespace tressel::sched
