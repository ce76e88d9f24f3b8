// fuzz-FORMAT [--seed N] [--count N] [--seconds N] [--dict FILE] [--save FILE] FILE|FOLDER...
//
// Gives a target the files as they are, then `count` inputs made of them by changes that follow from the seed. An input that
// crashes the target, takes longer than --seconds or more than 2 GiB is written to --save and named with its seed and number:
// the same program with that file as its only argument shows it again.
#include "test/fuzz/Mutate.h"
#include "test/fuzz/Target.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/resource.h>
#include <unistd.h>

using namespace tressel::fuzz;
using Bytes = Mutator::Bytes;

namespace {

constexpr size_t kMaxSize = 1 << 16;
constexpr int64_t kMaxKiB = int64_t(2) << 20;

const Bytes *current;     // what a signal handler may write
const char *savePath = "fuzz-input";
char currentName[4096];
Mutator *mutator;

void say(const char *text) { [[maybe_unused]] auto ignored = write(2, text, std::strlen(text)); }

/// Only what a signal handler may do.
void onSignal(int number) {
  say(number == SIGALRM ? "\nfuzz: takes too long: " : "\nfuzz: crashed: ");
  say(currentName);
  int fd = open(savePath, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd >= 0 && current && write(fd, current->data(), current->size()) == static_cast<ssize_t>(current->size())) {
    say("; the input is in ");
    say(savePath);
  }
  say("\n");
  signal(number, SIG_DFL);
  raise(number == SIGALRM ? SIGABRT : number);
}

void run(const Bytes &bytes, const std::string &name, unsigned seconds) {
  current = &bytes;
  std::snprintf(currentName, sizeof currentName, "%s", name.c_str());
  alarm(seconds);
  // A copy of its own size: a read behind the end is seen by ASan.
  Bytes exact(bytes);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  alarm(0);
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  if (use.ru_maxrss > kMaxKiB) {
    say("fuzz: takes more than 2 GiB\n");
    raise(SIGABRT);
  }
}

Bytes readAll(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

} // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize) {
  Bytes bytes(data, data + size);
  mutator->once(bytes, maxSize);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

int main(int argc, char **argv) {
  uint64_t seed = 1, count = 1000;
  unsigned seconds = 20;
  std::string dictionary;
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    if (arg.starts_with("--") && i + 1 == argc) {
      std::fprintf(stderr, "fuzz: %s needs a value\n", argv[i]);
      return 2;
    }
    if (arg == "--seed")
      seed = std::strtoull(argv[++i], nullptr, 10);
    else if (arg == "--count")
      count = std::strtoull(argv[++i], nullptr, 10);
    else if (arg == "--seconds")
      seconds = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
    else if (arg == "--dict")
      dictionary = argv[++i];
    else if (arg == "--save")
      savePath = argv[++i];
    else if (std::filesystem::is_directory(arg))
      for (const auto &entry : std::filesystem::recursive_directory_iterator(arg)) {
        if (entry.is_regular_file())
          files.push_back(entry.path());
      }
    else
      files.emplace_back(arg);
  }
  std::sort(files.begin(), files.end()); // the order of a folder is the file system's
  // A stack of its own: running out of stack is what deep nesting does.
  static char stack[1 << 16];
  stack_t alternative{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&alternative, nullptr);
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) {
    struct sigaction action{};
    action.sa_handler = onSignal;
    action.sa_flags = SA_ONSTACK;
    sigaction(number, &action, nullptr);
  }

  std::vector<Bytes> corpus;
  for (const auto &path : files) {
    if (!std::filesystem::is_regular_file(path)) {
      std::fprintf(stderr, "fuzz: %s: no such file\n", path.c_str());
      return 2;
    }
    Bytes bytes = readAll(path);
    run(bytes, path.string(), seconds);
    if (bytes.size() <= kMaxSize)
      corpus.push_back(std::move(bytes));
  }
  if (corpus.empty())
    corpus.emplace_back();
  const std::vector<std::string> words = dictionary.empty() ? std::vector<std::string>() : readDictionary(dictionary);
  for (uint64_t i = 0; i < count && files.size() != 1; ++i) {
    Mutator m(seed * 1'000'003 + i, words, corpus);
    mutator = &m;
    Bytes bytes = corpus[m.below(corpus.size())];
    if (LLVMFuzzerCustomMutator) {
      size_t size = bytes.size();
      bytes.resize(kMaxSize);
      for (size_t n = 1 + m.below(4); n > 0; --n)
        size = LLVMFuzzerCustomMutator(bytes.data(), size, kMaxSize, static_cast<unsigned>(m.below(1u << 31)));
      bytes.resize(size);
    } else {
      m.mutate(bytes, kMaxSize);
    }
    run(bytes, "seed " + std::to_string(seed) + ", input " + std::to_string(i), seconds);
  }
  std::printf("%zu files and %llu inputs made of them from seed %llu: none crashes\n", files.size(),
              static_cast<unsigned long long>(files.size() == 1 ? 0 : count), static_cast<unsigned long long>(seed));
  return 0;
}
