#include "codegen/cuda/emulate/Fibre.h"

#include "tressel/runtime/Error.h"

#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__has_feature)
#define TRESSEL_HAS_FEATURE(x) __has_feature(x)
#else
#define TRESSEL_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TRESSEL_HAS_FEATURE(address_sanitizer)
#define TRESSEL_ASAN 1
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || TRESSEL_HAS_FEATURE(thread_sanitizer)
#define TRESSEL_TSAN 1
extern "C" {
void *__tsan_get_current_fiber();
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
}
#endif

#if defined(__x86_64__)
// Saves what a called function must preserve on the stack that is left, and that stack's pointer in *save; goes on at
// the stack `load`. A new stack begins in tressel_fibre_begin, with the function and its argument in registers.
extern "C" void tressel_fibre_switch(void **save, void *load) __attribute__((visibility("hidden")));
extern "C" void tressel_fibre_begin() __attribute__((visibility("hidden")));
asm(R"(
.text
.p2align 4
.hidden tressel_fibre_switch
.globl tressel_fibre_switch
.type tressel_fibre_switch, @function
tressel_fibre_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
.size tressel_fibre_switch, .-tressel_fibre_switch
.p2align 4
.hidden tressel_fibre_begin
.globl tressel_fibre_begin
.type tressel_fibre_begin, @function
tressel_fibre_begin:
  movq %r12, %rdi
  callq *%r13
  ud2
.size tressel_fibre_begin, .-tressel_fibre_begin
)");
#endif

namespace tressel::codegen::cuda::emulate {

struct Fibre::Context {
#if defined(__x86_64__)
  void *own = nullptr, *caller = nullptr; ///< stack pointers of who is stopped
#else
  ucontext_t own, caller;
#endif
  void *sanitizerOwn = nullptr, *sanitizerCaller = nullptr;
  const void *callerStack = nullptr;
  size_t callerBytes = 0;
};

static constexpr size_t kGuard = 64 << 10; ///< more than a frame is likely to skip

Fibre::Fibre(size_t bytes) : bytes_((bytes + 4095) & ~size_t(4095)), context_(new Context) {
  void *memory = mmap(nullptr, kGuard + bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(static_cast<char *>(memory) + kGuard, bytes_, PROT_READ | PROT_WRITE)) {
    delete context_;
    throw OutOfMemory("no memory for the stack of an emulated GPU thread (" + std::to_string(bytes_) + " bytes)");
  }
  memory_ = static_cast<char *>(memory);
#ifdef TRESSEL_TSAN
  context_->sanitizerOwn = __tsan_create_fiber(0);
#endif
}

Fibre::~Fibre() {
#ifdef TRESSEL_TSAN
  __tsan_destroy_fiber(context_->sanitizerOwn);
#endif
  munmap(memory_, kGuard + bytes_);
  delete context_;
}

bool Fibre::owns(const void *address) const {
  return address >= memory_ + kGuard && address < memory_ + kGuard + bytes_;
}

void Fibre::start(void (*run)(void *), void *argument) {
  run_ = run, argument_ = argument;
  char *stack = memory_ + kGuard, *top = stack + bytes_;
  // Where resume() enters: the same on all kinds of machines.
  auto begin = +[](void *self) {
    auto *fibre = static_cast<Fibre *>(self);
#ifdef TRESSEL_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &fibre->context_->callerStack, &fibre->context_->callerBytes);
#endif
    fibre->run_(fibre->argument_);
  };
#if defined(__x86_64__)
  // From the top: 16 bytes that nobody uses, where to begin, six registers.
  void **frame = reinterpret_cast<void **>(top) - 9;
  std::memset(frame, 0, 9 * sizeof(void *));
  frame[2] = reinterpret_cast<void *>(begin); // r13
  frame[3] = this;                            // r12
  frame[6] = reinterpret_cast<void *>(&tressel_fibre_begin);
  context_->own = frame;
#else
  (void)top;
  getcontext(&context_->own);
  context_->own.uc_stack.ss_sp = stack;
  context_->own.uc_stack.ss_size = bytes_;
  context_->own.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(this), code = reinterpret_cast<uintptr_t>(begin);
  auto enter = +[](unsigned a, unsigned b, unsigned c, unsigned d) {
    auto join = [](unsigned high, unsigned low) { return static_cast<uintptr_t>(uint64_t(high) << 32 | low); };
    reinterpret_cast<void (*)(void *)>(join(a, b))(reinterpret_cast<void *>(join(c, d)));
  };
  makecontext(&context_->own, reinterpret_cast<void (*)()>(enter), 4, static_cast<unsigned>(uint64_t(code) >> 32),
              static_cast<unsigned>(code), static_cast<unsigned>(uint64_t(address) >> 32),
              static_cast<unsigned>(address));
#endif
}

void Fibre::resume() {
#ifdef TRESSEL_ASAN
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, memory_ + kGuard, bytes_);
#endif
#ifdef TRESSEL_TSAN
  context_->sanitizerCaller = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(context_->sanitizerOwn, 0);
#endif
#if defined(__x86_64__)
  tressel_fibre_switch(&context_->caller, context_->own);
#else
  swapcontext(&context_->caller, &context_->own);
#endif
#ifdef TRESSEL_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Fibre::stop() {
#ifdef TRESSEL_ASAN
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, context_->callerStack, context_->callerBytes);
#endif
#ifdef TRESSEL_TSAN
  __tsan_switch_to_fiber(context_->sanitizerCaller, 0);
#endif
#if defined(__x86_64__)
  tressel_fibre_switch(&context_->own, context_->caller);
#else
  swapcontext(&context_->own, &context_->caller);
#endif
#ifdef TRESSEL_ASAN
  __sanitizer_finish_switch_fiber(fake, &context_->callerStack, &context_->callerBytes);
#endif
}

} // namespace tressel::codegen::cuda::emulate
