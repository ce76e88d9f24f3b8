// Places for a kernel's virtual registers.
#pragma once

#include "test/standin/ptx/Program.h"

namespace tressel::standin::ptx {

/// The width of a register: a predicate, or 16, 32, 64 bits.
enum class Width : uint8_t { Predicate, Half, Word, Double };

/// An operand before it has a place: a virtual register, or a constant's place in the pool.
constexpr uint32_t kConstant = 0x80000000, kNone = 0xffffffff;

struct Draft {
  Instr instr;
  std::vector<uint32_t> refs; ///< operands: destinations first
  unsigned defs = 0;          ///< how many of them are destinations
  uint32_t guard = kNone;
  int label = -1;          ///< of a branch
  std::vector<int> labels; ///< of an indexed branch
  unsigned line = 0;
  std::string_view text;
};

/// Sets the operands of the drafts, and the frame of the program. `places`: of labels, indices of drafts.
void placeRegisters(std::vector<Draft> &drafts, const std::vector<int> &places, const std::vector<Width> &widths,
                    Program &program);

} // namespace tressel::standin::ptx
