// A record of ir/ops as the backends see it.
#pragma once

#include "mlir/TableGen/Operator.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TableGen/Record.h"

#include <string>
#include <vector>

namespace tressel::tblgen {

/// What an attribute is in C++, see ir/op/Attr.h.
enum class Kind { Bool, Int, Float, Type, String, Ints, Size, Sizes };
constexpr bool isList(Kind kind) { return kind == Kind::Ints || kind == Kind::Sizes; }

struct Argument {
  std::string name;
  bool isOperand;
  bool variadic = false;          ///< operands and results: any number
  Kind kind = Kind::Int;          ///< attributes from here on
  bool optional = false;          ///< may be absent: an attribute, or an operand at the end of the list
  bool hasDefault = false;
  std::string defaultValue;       ///< C++, "{}" for empty integers
};

class OpRecord {
public:
  explicit OpRecord(const llvm::Record &def);

  std::string name;                ///< "add"
  std::vector<Argument> arguments; ///< in the order of the record
  /// One variadic result stands for as many as the attributes say.
  std::vector<Argument> results;
  std::vector<const Argument *> operands() const;
  std::vector<const Argument *> attrs() const;
  /// The last operand if it is variadic, else null.
  const Argument *variadicOperand() const;
  bool hasVariadicResult() const { return results.size() == 1 && results[0].variadic; }

  llvm::StringRef get(llvm::StringRef field) const { return def->getValueAsString(field); }
  bool getBit(llvm::StringRef field) const { return def->getValueAsBit(field); }
  int64_t getInt(llvm::StringRef field) const { return def->getValueAsInt(field); }
  bool isElementwise() const { return !get("scalar").empty(); }
  bool isComposite() const { return !get("decomposition").empty(); }
  /// A fragment as a function's body: an expression gets its `return`; surrounded by #line, so that compilers
  /// point to the record. The line that leads back is filled in by `resolveLines`.
  std::string body(llvm::StringRef field) const;

  const llvm::Record *def;
};

/// All ops of the input, in source order. Ends with an error for a record that cannot be generated.
std::vector<OpRecord> collect(const llvm::RecordKeeper &records);

/// The type of what an op returns, made of `type`: itself, a tuple of several, or a vector.
std::string resultCppType(const OpRecord &op, llvm::StringRef type);

/// "std::get<int64_t>" and the like need the C++ type.
const char *cppType(Kind kind);
/// "Attr(Ints{1, 1})": a default as an attribute value; "{}" if there is none.
std::string attrValue(const Argument &argument);

/// What a parameter of a C++ function defaults to.
std::string defaultArgument(const Argument &argument);

/// Declarations of local variables, one per attribute, from `attrs`.
void unpackAttrs(const OpRecord &op, llvm::raw_ostream &os);

/// A C++ string literal of any text.
std::string quoted(llvm::StringRef text);

/// Replaces the marks left by `body` by the line numbers of this very text, and writes it.
void writeResolved(std::string text, llvm::StringRef generatedName, llvm::raw_ostream &os);

/// The text's lines without their common indentation and without blank first and last lines.
std::string dedent(llvm::StringRef text);

} // namespace tressel::tblgen
