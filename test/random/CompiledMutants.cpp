// compiled-mutants [--op NAME]... PROGRAM [ARG...]: runs a program, and makes mistakes in every schedule over several
// devices that it compiles (TRESSEL_DUMP_DIR): the verifier has to accept the schedule and to refuse each of them.
// Prints how many. --op names a custom op that the program registers; its result is as its first operand. Exit status:
// 0 fine, 1 something is wrong or there was no such schedule, 2 usage, 3 the program failed.
#include "ir/graph/Graph.h"
#include "ir/sched/Export.h"
#include "ir/sched/Sched.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "test/support/ScheduleMutations.h"
#include "tressel/runtime/CustomOp.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace tressel;

namespace {

/// Its exit status; what it prints goes to a file.
int run(char **argv, const std::filesystem::path &folder) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("TRESSEL_DUMP_DIR", (folder / "dump").c_str(), 1);
    if (chdir(folder.c_str()) != 0 || !std::freopen("output", "w", stdout))
      _exit(127);
    execv(argv[0], argv);
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

bool hasSeveralDevices(const runtime::Schedule &s) {
  return std::ranges::any_of(s.streams, [&](const auto &stream) { return stream.device != s.streams[0].device; });
}

} // namespace

int main(int argc, char **argv) {
  for (; argc > 2 && std::string(argv[1]) == "--op"; argc -= 2, argv += 2) {
    auto infer = [](runtime::CustomOp::Types in, const auto &) { return std::vector{in[0]}; };
    runtime::registerCustomOp({.name = argv[2], .symbol = argv[2], .minInputs = 1, .maxInputs = 8, .infer = infer});
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: compiled-mutants [--op NAME]... PROGRAM [ARG...]\n");
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "tressel-mutants-XXXXXX").string();
  if (!mkdtemp(folder.data()))
    return 3;
  struct Remove {
    const std::filesystem::path path;
    ~Remove() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  } afterwards{folder};
  if (const int status = run(argv + 1, folder)) {
    std::fprintf(stderr, "compiled-mutants: %s ends with status %d\n", argv[1], status);
    return 3;
  }
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(folder + "/dump"))
    if (entry.path().string().ends_with(".schedule.mlir"))
      files.push_back(entry.path());
  std::ranges::sort(files);
  test::MutationTally all;
  bool fine = true;
  for (const auto &file : files) {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    sched::registerDialect(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    auto module = mlir::parseSourceFile<mlir::ModuleOp>(file.string(), &context);
    if (!module || module->getOps<sched::ProgramOp>().empty()) {
      std::fprintf(stderr, "%s does not parse\n", file.filename().c_str());
      return 1;
    }
    const runtime::Schedule s = sched::exportSchedule(*module->getOps<sched::ProgramOp>().begin());
    if (!hasSeveralDevices(s))
      continue;
    test::MutationTally tally;
    const std::string problem = test::tryMutations(s, tally);
    std::printf("%s: %s\n", file.filename().c_str(), tally.text().c_str());
    if (!problem.empty()) {
      std::fprintf(stderr, "%s: %s\n", file.filename().c_str(), problem.c_str());
      fine = false;
    }
    all.add(tally);
  }
  std::printf("%s\n", all.text().c_str());
  const bool some = all.made[static_cast<size_t>(test::Mutation::RemovedWait)] > 0;
  if (!some)
    std::fprintf(stderr, "compiled-mutants: %s compiles no schedule over several devices\n", argv[1]);
  return fine && some ? 0 : 1;
}
