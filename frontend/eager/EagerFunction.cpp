#include "frontend/eager/EagerFunction.h"
#include "frontend/eager/Eager.h"
#include "frontend/eager/OneOp.h"

#include "frontend/trace/Trace.h"
#include "ir/op/Infer.h"

#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace tressel::eager {
using namespace detail;

namespace {
/// The most functions for exact sizes that a class keeps, and the most classes. The oldest are evicted.
constexpr size_t kMostExact = 64, kMostClasses = 1024;
} // namespace

void EagerFunction::compile() {
  const op::OpInfo &info = *call_.op;
  try {
    TraceRecorder recorder;
    const std::vector<Tensor> results = recordOp(recorder, call_);
    function_ = recorder.finish(results, {.name = info.name}).function;
  } catch (const InternalError &) {
    throw;
  } catch (const InputError &e) {
    throw InputError(Error::Details{.message = e.message(), .where = where_, .op = info.name, .hint = e.hint()});
  } catch (const Error &e) {
    throw Error(Error::Details{.message = e.message(), .where = where_, .op = info.name, .hint = e.hint()});
  }
  countEagerFunction();
}

class EagerFunctionClass {
public:
  explicit EagerFunctionClass(std::optional<codegen::OpCall> general) : general_(std::move(general)) {}

  /// For sizes that are new to the caller. `often`: they recur, so they get a function of their own.
  std::shared_ptr<EagerFunction> find(const codegen::OpCall &exact, SourceLoc where, bool often) {
    std::string key = exact.str();
    std::lock_guard lock(mutex_);
    if (auto it = exact_.find(key); it != exact_.end() && !it->second->failed())
      return it->second;
    if (general_ && !often && !exact_.empty() && !(forAll_ && forAll_->failed())) {
      if (!forAll_) {
        forAll_ = std::make_shared<EagerFunction>(*general_, where);
        compileInBackground(forAll_);
      }
      return forAll_;
    }
    auto made = std::make_shared<EagerFunction>(exact, where);
    exact_[key] = made;
    order_.push_back(std::move(key));
    if (order_.size() > kMostExact) {
      exact_.erase(order_.front());
      order_.pop_front();
    }
    compileInBackground(made);
    return made;
  }

private:
  const std::optional<codegen::OpCall> general_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<EagerFunction>> exact_;
  std::deque<std::string> order_;
  std::shared_ptr<EagerFunction> forAll_;
};

namespace {
struct Classes {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<EagerFunctionClass>> all;
  std::deque<std::string> order;
  static Classes &instance() {
    static auto *classes = new Classes; // queued tasks may outlive static destruction
    return *classes;
  }
};
} // namespace

EagerFunctionCall::EagerFunctionCall(std::shared_ptr<EagerFunctionClass> functions, codegen::OpCall exact, dim::Values sizes)
    : functions_(std::move(functions)), exact_(std::move(exact)), sizes_(std::move(sizes)) {}

EagerFunctionCall::Task EagerFunctionCall::task(std::shared_ptr<EagerFunction> function) const {
  Task task;
  task.function_ = std::move(function);
  task.functions_ = functions_;
  task.exact_ = exact_;
  task.sizes_ = sizes_;
  return task;
}

int32_t EagerFunctionCall::Task::operator()(const runtime::TaskView &task) const {
  std::shared_ptr<EagerFunction> function = function_;
  try {
    function->ensure();
  } catch (const Error &) {
    if (!function->isSymbolic())
      throw;
    function = functions_->find(exact_, {}, /*often=*/true);
    function->ensure();
  }
  return function->function().runInTask(task, exact_.operands.size(), function->isSymbolic() ? &sizes_ : nullptr);
}

const std::shared_ptr<EagerFunction> &EagerFunctionCall::choose(SourceLoc where) {
  if (!current_ || current_->failed()) [[unlikely]]
    current_ = functions_->find(exact_, where, current_ != nullptr);
  if (current_->isSymbolic()) [[unlikely]] {
    if (++calls_ == kOften)
      wanted_ = functions_->find(exact_, where, true);
    if (wanted_ && wanted_->ready())
      current_ = std::move(wanted_);
  }
  return current_;
}

std::unique_ptr<EagerFunctionCall> findEagerFunctions(const codegen::OpCall &exact, std::span<const Classified> classes) {
  // A program's symbols must be dimensions of its inputs, which only the last class guarantees.
  const Classified *general = classes.empty() || classes.back().sizes.empty() ? nullptr : &classes.back();
  if (general) { // whether the op's rules accept unknown sizes
    const op::Inferred inferred = op::inferTypes(*exact.op, general->call.operands, general->call.attrs);
    if (!inferred)
      general = nullptr;
    for (const TensorType &type : inferred.types)
      if (!dim::isKnown(type.shape))
        general = nullptr;
  }
  std::string key = general ? general->call.str() : exact.str();
  Classes &classesOfAll = Classes::instance();
  std::lock_guard lock(classesOfAll.mutex);
  auto [it, isNew] = classesOfAll.all.emplace(key, nullptr);
  if (isNew) {
    it->second = std::make_shared<EagerFunctionClass>(general ? std::optional(general->call) : std::nullopt);
    classesOfAll.order.push_back(key);
  }
  dim::Values sizes;
  for (size_t i = 0; general && i < general->sizes.size(); ++i)
    sizes.bind(general->call.symbols[i], general->sizes[i]);
  auto call = std::make_unique<EagerFunctionCall>(it->second, exact, std::move(sizes));
  if (classesOfAll.order.size() > kMostClasses) {
    classesOfAll.all.erase(classesOfAll.order.front());
    classesOfAll.order.pop_front();
  }
  return call;
}

void clearEagerFunctions() {
  Classes &classes = Classes::instance();
  std::lock_guard lock(classes.mutex);
  classes.all.clear();
  classes.order.clear();
}

} // namespace tressel::eager
