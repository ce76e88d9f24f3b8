// tressel cache: what is kept of kernels between runs, and getting rid of it.
#include "tools/tressel/Compiler.h"
#include "tools/tressel/Tool.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tressel::tool {

int cacheCommand(const CacheArgs &args) {
  const CacheAction action = args.action == "clear"    ? CacheAction::Clear
                             : args.action == "verify" ? CacheAction::Verify
                                                       : CacheAction::Info;
  int64_t damaged = 0;
  const CacheInfo info = compiler().cache(action, damaged);
  if (info.folder.empty())
    throw EnvironmentError("there is no cache: " + info.problem);
  if (!info.problem.empty())
    throw EnvironmentError("the cache cannot be used: " + info.problem);
  const auto entries = static_cast<long long>(info.entries);
  if (args.json && action == CacheAction::Clear) {
    nlohmann::ordered_json object{{"schema", 1}, {"folder", info.folder}, {"deleted", info.entries}, {"deleted_bytes", info.bytes}};
    std::printf("%s\n", object.dump(2).c_str());
  } else if (args.json) {
    nlohmann::ordered_json object{{"schema", 1},           {"folder", info.folder}, {"entries", info.entries},
                                  {"bytes", info.bytes},   {"limit", info.limit},   {"hits", info.hits},
                                  {"misses", info.misses}, {"damaged", damaged}};
    std::printf("%s\n", object.dump(2).c_str());
  } else if (args.action == "path") {
    std::printf("%s\n", info.folder.c_str());
  } else if (action == CacheAction::Clear) {
    std::printf("%lld entries deleted, %s\n", entries, humanBytes(info.bytes).c_str());
  } else if (action == CacheAction::Verify) {
    std::printf("%lld entries are good, %lld were damaged and are deleted\n", entries, static_cast<long long>(damaged));
  } else {
    std::printf("folder   %s\nentries  %lld\nsize     %s of at most %s\nfound    %lld of %lld times\n", info.folder.c_str(),
                entries, humanBytes(info.bytes).c_str(), humanBytes(info.limit).c_str(), static_cast<long long>(info.hits),
                static_cast<long long>(info.hits + info.misses));
  }
  return kOk;
}

} // namespace tressel::tool
