// A record of ir/ops, as the backends of the generator use it.
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
  bool variadic = false;          ///< operands and results: any number of them
  Kind kind = Kind::Int;          ///< this and what follows are for attributes
  bool optional = false;          ///< may be absent: an attribute, or an operand at the end of the list
  bool hasDefault = false;
  std::string defaultValue;       ///< C++, "{}" for empty integers
};

class OpRecord {
public:
  explicit OpRecord(const llvm::Record &def);

  std::string name;                ///< "add"
  std::vector<Argument> arguments; ///< in the order of the record
  /// A single variadic result stands for a number of results that attributes determine.
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
  /// A fragment as the body of a function. An expression gets its `return`. Surrounded by #line directives, so that
  /// compilers report lines of the record; `resolveLines` fills in the line of the directive that leads back.
  std::string body(llvm::StringRef field) const;

  const llvm::Record *def;
};

/// All ops of the input, in source order. Ends with an error for a record that cannot be generated.
std::vector<OpRecord> collect(const llvm::RecordKeeper &records);

/// The C++ type that an op returns, for results of `type`: the type itself, a tuple, or a vector.
std::string resultCppType(const OpRecord &op, llvm::StringRef type);

/// The C++ type of an attribute, as in "std::get<int64_t>".
const char *cppType(Kind kind);
/// "Attr(Ints{1, 1})": a default as an attribute value; "{}" if there is none.
std::string attrValue(const Argument &argument);

/// The default of a C++ function's parameter.
std::string defaultArgument(const Argument &argument);

/// Declares local variables, one per attribute, initialized from `attrs`.
void unpackAttrs(const OpRecord &op, llvm::raw_ostream &os);

/// A C++ string literal of the text.
std::string quoted(llvm::StringRef text);

/// Replaces the marks left by `body` by the line numbers of the generated text, and writes it.
void writeResolved(std::string text, llvm::StringRef generatedName, llvm::raw_ostream &os);

/// The text's lines without their common indentation and without blank first and last lines.
std::string dedent(llvm::StringRef text);

} // namespace tressel::tblgen
