// Kernels of a few lines, run by the interpreter of PTX over buffers of the test.
#pragma once

#include "test/standin/ptx/Program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

namespace tressel::standin::ptx::test {

/// Global memory: buffers with gaps between them.
class Card : public Memory {
public:
  Span *find(uint64_t address) override {
    for (Buffer &buffer : buffers_)
      if (address >= buffer.span.begin && address < buffer.span.end)
        return &buffer.span;
    return nullptr;
  }
  template <class T> uint64_t add(const std::vector<T> &values) {
    Buffer &buffer = buffers_.emplace_back();
    const size_t bytes = values.size() * sizeof(T);
    buffer.bytes.resize((bytes + 7) / 8);
    std::memcpy(buffer.bytes.data(), values.data(), bytes);
    buffer.reads.resize(bytes / 64 + 1), buffer.writes.resize(bytes / 64 + 1);
    const uint64_t begin = 0x1000000 * buffers_.size();
    buffer.span.begin = begin, buffer.span.end = begin + bytes;
    buffer.span.host = reinterpret_cast<std::byte *>(buffer.bytes.data());
    buffer.span.reads = buffer.reads.data(), buffer.span.writes = buffer.writes.data();
    return begin;
  }
  template <class T> std::vector<T> get(uint64_t address) {
    const Span *span = find(address);
    std::vector<T> values((span->end - span->begin) / sizeof(T));
    std::memcpy(values.data(), span->host, values.size() * sizeof(T));
    return values;
  }
  Span &span(uint64_t address) { return *find(address); }
  static std::vector<unsigned> marked(const uint64_t *bits, uint64_t bytes) {
    std::vector<unsigned> result;
    for (unsigned i = 0; i < bytes; ++i)
      if (bits[i / 64] >> (i % 64) & 1)
        result.push_back(i);
    return result;
  }

private:
  struct Buffer {
    Span span;
    std::vector<uint64_t> bytes, reads, writes;
  };
  std::deque<Buffer> buffers_;
};

inline const char *const kHead = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// A kernel "k" of pointers p0, p1...: %p<n>, %h<n>, %r<n>, %f<n>, %rd<n>, %d<n> are there; %r0 is tid.x, and %rdN is
/// the address pN.
inline std::string kernelText(const std::string &body, unsigned pointers, const std::string &declarations = "") {
  std::string text = std::string(kHead) + declarations + ".visible .entry k(";
  for (unsigned i = 0; i < pointers; ++i)
    text += (i ? ", " : "") + std::string(".param .u64 p") + std::to_string(i);
  text += ") {\n.reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<60>; .reg .f32 %f<40>; .reg .b64 %rd<40>; .reg .f64 "
          "%d<20>;\nmov.u32 %r0, %tid.x;\n";
  for (unsigned i = 0; i < pointers; ++i)
    text += "ld.param.u64 %rd" + std::to_string(i) + ", [p" + std::to_string(i) + "];\n";
  return text + body + "\nret;\n}\n";
}

struct Shape {
  unsigned threads = 32, blocks = 1, dynamicShared = 0;
  uint64_t seed = 0;
  unsigned cluster = 1;
};

inline std::optional<Fault> runText(const std::string &text, Card &card, const std::vector<uint64_t> &params,
                                    Shape shape = {}) {
  const auto module = Module::parse(text);
  const Kernel *kernel = module->find("k");
  EXPECT_NE(kernel, nullptr);
  Launch launch;
  launch.block[0] = shape.threads, launch.grid[0] = shape.blocks;
  launch.dynamicSharedBytes = shape.dynamicShared, launch.seed = shape.seed, launch.cluster = shape.cluster;
  launch.params = std::as_bytes(std::span(params));
  return kernel->run(launch, card);
}

inline std::string messageOf(const std::optional<Fault> &fault) { return fault ? fault->message : ""; }

/// What a kernel stores for each of its threads with "[%rd20]", the address of the thread's 8 bytes of the only buffer.
template <class T>
std::vector<T> perThread(const std::string &body, Shape shape = {}, const std::string &declarations = "") {
  Card card;
  const uint64_t out = card.add(std::vector<uint64_t>(shape.threads * shape.blocks, 0));
  const std::string text =
      kernelText("mov.u32 %r50, %ctaid.x; mov.u32 %r51, %ntid.x; mad.lo.u32 %r50, %r50, %r51, %r0;\n"
                 "mul.wide.u32 %rd20, %r50, 8; add.u64 %rd20, %rd20, %rd0;\n" +
                     body,
                 1, declarations);
  const auto fault = runText(text, card, {out}, shape);
  EXPECT_FALSE(fault) << messageOf(fault);
  const auto words = card.get<uint64_t>(out);
  std::vector<T> result(words.size());
  for (size_t i = 0; i < words.size(); ++i)
    std::memcpy(&result[i], &words[i], sizeof(T));
  return result;
}

template <class T> std::string registerOf(unsigned number) {
  return (sizeof(T) == 2 ? "%h" : sizeof(T) == 4 ? "%r" : "%rd") + std::to_string(number);
}

/// Applies an instruction to each triple of operands: $d, $a, $b, $c in its text. With all lanes of a warp and with
/// every other one, compiled for the least processor and for the best: all the same, or the test fails.
template <class D, class A, class B = A, class C = A>
std::vector<D> apply(std::string instruction, const std::vector<A> &a, std::vector<B> b = {}, std::vector<C> c = {}) {
  b.resize(a.size()), c.resize(a.size());
  std::vector<D> first;
  for (int variant = 0; variant < 4; ++variant) {
    useBaseline(variant & 1);
    const bool isDiverged = variant & 2;
    Card card;
    const std::vector<uint64_t> params = {card.add(a), card.add(b), card.add(c), card.add(std::vector<D>(a.size()))};
    std::string text = instruction;
    auto replace = [&text](const std::string &from, const std::string &to) {
      for (size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, from.size(), to);
    };
    replace("$d", registerOf<D>(10)), replace("$a", registerOf<A>(11)), replace("$b", registerOf<B>(12)),
        replace("$c", registerOf<C>(13));
    auto bits = [](size_t bytes) { return "b" + std::to_string(8 * bytes); };
    auto address = [](unsigned n, size_t bytes) {
      return "mad.wide.u32 %rd" + std::to_string(n) + ", %r50, " + std::to_string(bytes) + ", %rd" + std::to_string(n) +
             ";\n";
    };
    std::string body = "mov.u32 %r50, %ctaid.x; mad.lo.u32 %r50, %r50, 32, %r0; setp.ge.u32 %p19, %r50, " +
                       std::to_string(a.size()) + "; @%p19 ret;\n";
    body += address(0, sizeof(A)) + address(1, sizeof(B)) + address(2, sizeof(C)) + address(3, sizeof(D));
    body += "ld.global." + bits(sizeof(A)) + " " + registerOf<A>(11) + ", [%rd0]; ld.global." + bits(sizeof(B)) + " " +
            registerOf<B>(12) + ", [%rd1]; ld.global." + bits(sizeof(C)) + " " + registerOf<C>(13) + ", [%rd2];\n";
    if (isDiverged)
      body += "and.b32 %r49, %r0, 1; setp.eq.u32 %p18, %r49, 0; @%p18 bra $even;\n" + text +
              "\nbra.uni $done;\n$even:\n" + text + "\n$done:\n";
    else
      body += text + "\n";
    body += "st.global." + bits(sizeof(D)) + " [%rd3], " + registerOf<D>(10) + ";";
    const auto fault = runText(kernelText(body, 4), card, params,
                               {.threads = 32, .blocks = static_cast<unsigned>((a.size() + 31) / 32)});
    EXPECT_FALSE(fault) << messageOf(fault);
    const auto result = card.get<D>(params[3]);
    if (variant == 0)
      first = result;
    else
      EXPECT_EQ(std::memcmp(first.data(), result.data(), first.size() * sizeof(D)), 0)
          << instruction << ", variant " << variant;
  }
  useBaseline(false);
  return first;
}

} // namespace tressel::standin::ptx::test
