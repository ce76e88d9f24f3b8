// Handlers of instructions that work on all lanes at once. Compiled twice, for two instruction sets: PTX_EXECUTE names
// the namespace.
#include "test/standin/ptx/ExecuteConvert.h"
#include "test/standin/ptx/ExecuteFloat.h"
#include "test/standin/ptx/ExecuteInteger.h"
#include "test/standin/ptx/ExecuteMatrix.h"
#include "test/standin/ptx/ExecuteMemory.h"

namespace tressel::standin::ptx::PTX_EXECUTE {

void addHandlers(void *context, void (*receive)(void *context, const char *name, const char *type, Handler handler)) {
  const Table add{context, receive};
  addIntegerHandlers(add);
  addFloatHandlers(add);
  addConversionHandlers(add);
  addMemoryHandlers(add);
  addMatrixHandlers(add);
}

} // namespace tressel::standin::ptx::PTX_EXECUTE
