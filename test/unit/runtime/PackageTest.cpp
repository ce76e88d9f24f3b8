#include "tressel/runtime/Package.h"

#include "ScheduleBuilder.h"
#include "TestImages.h"
#include "runtime/package/PackageFormat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <algorithm>
#include <random>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace tressel;
using namespace tressel::runtime;

namespace {

const TensorType t4 = ScheduleBuilder::floats(4);

/// out = (x + c) + w; and a counter that moves on by w at each call.
ScheduleBuilder sample() {
  ScheduleBuilder b(2);
  const uint32_t x = b.input("x", t4), out = b.output("out", t4), w = b.state("layer.w", t4, StateKind::Parameter),
                 d = b.state("w.packed", t4, StateKind::Derived), m = b.state("count", t4, StateKind::Mutable),
                 c = b.constant(0, t4), h = b.buffer(Space::Arena, b.arena(64), 0, t4);
  const uint32_t add = b.kernel("add", 4, 4);
  b.s.kernels[add].numInputs = 2;
  b.s.kernels[add].flops = 4;
  b.copy(w, d, {}, 0, true);
  const uint32_t c0 = b.launch(add, {x, c}, {h});
  b.launch(add, {h, d}, {out}, {c0}, 1);
  b.launch(add, {m, d}, {m});
  b.s.step.commands[1].loc = b.location("add", "model.cpp", 17);
  b.s.peakBytes = 64;
  return b;
}

struct TempFile {
  std::string path = testing::TempDir() + "tressel_package_" + std::to_string(::getpid()) + ".tsl";
  ~TempFile() { std::filesystem::remove(path); }
};

struct Sample {
  ScheduleBuilder program = sample();
  std::vector<std::byte> image = testImage("kernels");
  float constant[4] = {100, 200, 300, 400}, w[4] = {1, 2, 3, 4}, count[4] = {};

  PackageFunction function(std::string name = "main", CpuLevel level = CpuLevel::Baseline) const {
    return {std::move(name), &program.s, {{level, image}}, Blob(std::as_bytes(std::span(constant)))};
  }
  std::vector<PackageState> states() const {
    return {{"layer.w", t4, std::as_bytes(std::span(w))}, {"count", t4, std::as_bytes(std::span(count))}};
  }
  std::vector<std::byte> bytes() const {
    const PackageFunction f = function();
    return packageBytes({&f, 1}, states());
  }
};

/// What an InputError says; empty if there is none.
template <typename Fn> std::string messageOf(Fn fn) {
  try {
    fn();
  } catch (const InputError &e) {
    return e.what();
  }
  return "";
}
std::string openMessage(const std::string &path) {
  return messageOf([&] { Package::open(path); });
}

} // namespace

TEST(Package, RunsWhatWasWritten) {
  Sample sample;
  TempFile file;
  const PackageFunction f = sample.function();
  writePackage(file.path, {&f, 1}, sample.states());
  float x[4] = {0.5f, 0, 0, 0}, out[4];
  const void *inputs[] = {x};
  void *outputs[] = {out};
  std::optional<Context> context;
  {
    const Package package = Package::open(file.path);
    EXPECT_EQ(package.functions(), std::vector<std::string>{"main"});
    EXPECT_EQ(package.levels(), std::vector<CpuLevel>{CpuLevel::Baseline});
    EXPECT_EQ(package.constantBytes(), 64); // a multiple of 64
    EXPECT_EQ(package.schedule().inputs[0].name, "x");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(package.stateValue("layer.w").data()) % 64, 0u);
    EXPECT_TRUE(package.stateValue("nobody").empty());
    context = package.context();
    Context other = package.context(); // its counter is its own
    other.run(inputs, outputs);
  }
  std::filesystem::remove(file.path); // mapped memory lives on in the context
  for (int i = 0; i < 3; ++i)
    context->run(inputs, outputs);
  EXPECT_EQ(out[0], 101.5f);
  EXPECT_EQ(out[3], 404.0f);
}

TEST(Package, EveryFieldOfAScheduleSurvives) {
  Sample sample;
  Schedule &s = sample.program.s;
  s.kernels[0].epilogue = "addRelu";
  s.kernels[0].params = "{}";
  s.kernels[0].scratchBytes = 128;
  s.kernels[0].bytes = 48;
  s.peakLowerBoundBytes = 32;
  s.step.waits[0].reason = WaitReason::War;
  TempFile file;
  writeFile(file.path, sample.bytes());
  const Package package = Package::open(file.path);
  const Schedule &r = package.schedule();
  EXPECT_EQ(r.name, s.name);
  ASSERT_EQ(r.streams.size(), 2u);
  EXPECT_EQ(r.streams[1].name, "lane1");
  EXPECT_EQ(r.streams[1].kind, StreamKind::Lane);
  EXPECT_EQ(r.arenas[0].bytes, 64);
  ASSERT_EQ(r.buffers.size(), s.buffers.size());
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    EXPECT_EQ(r.buffers[i].space, s.buffers[i].space);
    EXPECT_EQ(r.buffers[i].index, s.buffers[i].index);
    EXPECT_EQ(r.buffers[i].bytes, s.buffers[i].bytes);
    EXPECT_EQ(r.buffers[i].type, s.buffers[i].type);
  }
  EXPECT_EQ(r.outputs[0].type, t4);
  EXPECT_EQ(r.states[1].kind, StateKind::Derived);
  EXPECT_EQ(r.constants[0].bytes, 16);
  const KernelDesc &k = r.kernels[0];
  EXPECT_EQ(k.symbol + k.provider + k.params + k.epilogue, "addgenerated{}addRelu");
  EXPECT_EQ(k.numInputs, 2);
  EXPECT_EQ(k.range * 1000 + k.grain, 4004);
  EXPECT_EQ(k.scratchBytes + k.flops + k.bytes, 128 + 4 + 48);
  EXPECT_EQ(r.locations[1].file + r.locations[1].op, "model.cppadd");
  EXPECT_EQ(r.locations[1].line, 17u);
  EXPECT_EQ(r.peakBytes * 100 + r.peakLowerBoundBytes, 6432);
  ASSERT_EQ(r.step.commands.size(), 3u);
  EXPECT_EQ(r.step.commands[1].stream, 1);
  EXPECT_EQ(r.step.commands[1].loc, 1u);
  EXPECT_EQ(r.step.commands[1].firstOperand, 3u);
  EXPECT_EQ(r.step.commands[1].numOperands, 3);
  EXPECT_EQ(r.step.operands[2].access, Access::Write);
  EXPECT_EQ(r.step.waits[0].reason, WaitReason::War);
  EXPECT_EQ(r.prepare.commands[0].kind, CommandKind::Copy);
}

TEST(Package, HomesSurviveAndTheProcessorRefusesThem) {
  ScheduleBuilder b(1);
  const DeviceRef gpu{DeviceKind::Gpu, 3};
  b.s.streams[0].device = gpu;
  const uint32_t x = b.input("x", t4), out = b.output("out", t4), m = b.state("m", t4, StateKind::Mutable);
  b.s.inputs[0].home = b.s.outputs[0].home = b.s.states[0].home = homeOn(gpu);
  b.copy(x, out);
  b.copy(x, m);
  const float value[4] = {};
  const PackageFunction f{"main", &b.s, {}, Blob()};
  const PackageState state{"m", t4, std::as_bytes(std::span(value))};
  TempFile file;
  writeFile(file.path, packageBytes({&f, 1}, {&state, 1}));
  const Package package = Package::open(file.path);
  const Schedule &r = package.schedule();
  EXPECT_EQ(r.inputs[0].home, homeOn(gpu));
  EXPECT_EQ(r.outputs[0].home, homeOn(gpu));
  EXPECT_EQ(r.states[0].home, homeOn(gpu));
  EXPECT_NE(messageOf([&] { package.context(); }).find("GPU"), std::string::npos);
  b.s.inputs[0].home.memory = MemoryKind::Pinned;
  writeFile(file.path, packageBytes({&f, 1}, {&state, 1}));
  EXPECT_NE(openMessage(file.path).find("input 0 lies in memory of an unknown kind"), std::string::npos)
      << openMessage(file.path);
}

TEST(Package, FunctionsShareWhatIsEqual) {
  Sample sample;
  const PackageFunction one[] = {sample.function("predict")};
  const PackageFunction two[] = {sample.function("predict"), sample.function("again")};
  const size_t alone = packageBytes(one, sample.states()).size(), both = packageBytes(two, sample.states()).size();
  EXPECT_LT(both, alone + sample.image.size());
  TempFile file;
  writePackage(file.path, two, sample.states());
  const Package package = Package::open(file.path);
  EXPECT_EQ(package.functions(), (std::vector<std::string>{"predict", "again"}));
  EXPECT_EQ(package.executable("again"), package.executable("again"));
  EXPECT_NE(package.executable("again"), package.executable("predict"));
  EXPECT_THROW(package.executable("missing"), Error);
}

TEST(Package, WeightsMayLieInPieces) {
  Sample sample;
  std::mt19937 random(1);
  std::vector<std::vector<std::byte>> parts;
  Blob blob;
  for (size_t size : {1, 31, 64, 33, 100, 7, 4096, 63}) {
    auto &part = parts.emplace_back(size);
    std::ranges::generate(part, [&] { return std::byte(random()); });
    blob.add(part);
  }
  PackageFunction pieces = sample.function(), whole = pieces;
  pieces.constants = blob;
  const auto joined = blob.joined();
  EXPECT_EQ(joined->size(), blob.size());
  whole.constants = Blob(*joined);
  EXPECT_EQ(packageBytes({&pieces, 1}, sample.states()), packageBytes({&whole, 1}, sample.states()));
  EXPECT_EQ(blob, Blob(*joined));
  TempFile file;
  writePackage(file.path, {&pieces, 1}, sample.states());
  Package::open(file.path).check(); // the checksum is that of the file's bytes
  // Two functions of the same weights, differently cut, have them once.
  whole.name = "again";
  const PackageFunction both[] = {pieces, whole};
  EXPECT_LT(packageBytes(both, sample.states()).size(), packageBytes({&pieces, 1}, sample.states()).size() + blob.size());
  parts[2][5] ^= std::byte(1);
  EXPECT_FALSE(blob == Blob(*joined));
}

TEST(Package, ChoosesTheLevelOfTheCpu) {
  Sample sample;
  PackageFunction f = sample.function("main", CpuLevel::V3);
  TempFile file;
  writePackage(file.path, {&f, 1}, sample.states());
  const Package package = Package::open(file.path);
  EXPECT_NE(package.executable("", CpuLevel::V4), nullptr);
  try {
    package.executable("", CpuLevel::Baseline);
    FAIL();
  } catch (const InputError &e) {
    EXPECT_NE(std::string(e.what()).find("the code is for x86-64 v3, this CPU has baseline"), std::string::npos)
        << e.what();
  }
}

TEST(Package, AFunctionMayHaveAScheduleForEachLevel) {
  Sample low, high;
  high.program.s.kernels[0].grain = 2; // another schedule
  const PackageFunction both[] = {low.function("main", CpuLevel::Baseline), high.function("main", CpuLevel::V3)};
  TempFile file;
  writePackage(file.path, both, low.states());
  const Package package = Package::open(file.path);
  EXPECT_EQ(package.functions(), std::vector<std::string>{"main"});
  EXPECT_EQ(package.levels(), (std::vector<CpuLevel>{CpuLevel::Baseline, CpuLevel::V3}));
  EXPECT_EQ(package.executable("", CpuLevel::Baseline)->schedule().kernels[0].grain, 4);
  EXPECT_EQ(package.executable("", CpuLevel::V4)->schedule().kernels[0].grain, 2);
  // The same level twice, and another signature, are refused.
  const PackageFunction twice[] = {both[0], both[0]};
  EXPECT_THROW(packageBytes(twice), Error);
  high.program.s.inputs[0].name = "other";
  EXPECT_THROW(packageBytes(both), Error);
}

TEST(Package, MissingValuesAndLibrariesAreNamed) {
  Sample sample;
  PackageFunction f = sample.function();
  TempFile file;
  auto message = [&] {
    try {
      Package::open(file.path).context();
    } catch (const InputError &e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto states = sample.states();
  writePackage(file.path, {&f, 1}, std::span(states).first(1));
  EXPECT_NE(message().find("has no value for state 'count'"), std::string::npos) << message();
  sample.program.s.kernels[0].provider = "some library";
  sample.program.s.kernels[0].target = KernelTarget::HostLibrary;
  writePackage(file.path, {&f, 1}, sample.states());
  EXPECT_NE(message().find("needs the library 'some library'"), std::string::npos) << message();
}

TEST(Package, ProvidersOfEarlierVersionsHaveTheirNamesOfNow) {
  Sample sample;
  TempFile file;
  sample.program.s.kernels[0].provider = std::string("kernels");
  const PackageFunction f = sample.function();
  writePackage(file.path, {&f, 1}, sample.states());
  EXPECT_EQ(Package::open(file.path).schedule().kernels[0].provider, "builtin");
}

TEST(Package, WritingChecksItsArguments) {
  Sample sample;
  const PackageFunction twice[] = {sample.function(), sample.function()};
  EXPECT_THROW(packageBytes({}), Error);
  EXPECT_THROW(packageBytes(twice), Error);
  const PackageState small[] = {{"layer.w", t4, std::as_bytes(std::span(sample.w)).first(8)}};
  EXPECT_THROW(packageBytes(std::span(twice).first(1), small), Error);
  EXPECT_THROW(writePackage("/nowhere/p.tsl", std::span(twice).first(1)), RuntimeError);
}

TEST(Package, ForeignFilesAreRefused) {
  TempFile file;
  EXPECT_NE(openMessage("/nowhere/p.tsl").find("No such file"), std::string::npos);
  EXPECT_NE(openMessage("/").find("not a regular file"), std::string::npos);
  writeFile(file.path, std::span<const std::byte>());
  EXPECT_NE(openMessage(file.path).find("not a Tressel package"), std::string::npos);
  writeFile(file.path, testImage("kernels"));
  EXPECT_NE(openMessage(file.path).find("not a Tressel package"), std::string::npos);
}

TEST(Package, OtherFormatVersionsAreRefused) {
  TempFile file;
  auto bytes = Sample().bytes();
  auto told = [&](uint32_t version) {
    std::memcpy(bytes.data() + offsetof(PackageHeader, version), &version, sizeof(version));
    writeFile(file.path, bytes);
    return openMessage(file.path);
  };
  const std::string reads = ", this library reads version " + std::to_string(kPackageVersion);
  EXPECT_EQ(told(kPackageVersion - 1), file.path + ": the package has format version " +
                                           std::to_string(kPackageVersion - 1) + reads + " (compile the model again)");
  EXPECT_EQ(told(99), file.path + ": the package has format version 99" + reads +
                          " (it is from a newer Tressel: update the library)");
  EXPECT_EQ(told(kPackageVersion), "");
}

/// test/packages holds a package per format version, as written then: it runs with the results of then, or is refused.
TEST(Package, KeptPackagesRunOrAreRefused) {
  int current = 0;
  for (uint32_t version = 2; version <= kPackageVersion; ++version) {
    const std::string path = TRESSEL_SOURCE_DIR "/test/packages/mlp-v" + std::to_string(version) + ".tsl";
    if (version != kPackageVersion) {
      EXPECT_NE(openMessage(path).find("has format version " + std::to_string(version) + ", this library reads"),
                std::string::npos);
      continue;
    }
    ++current;
    Package package = Package::open(path);
    package.check();
    Context context = package.context();
    alignas(64) float x[4 * 16], w[16 * 8], y[4 * 8] = {};
    for (int i = 0; i < 64; ++i)
      x[i] = static_cast<float>(i % 7 - 3);
    for (int i = 0; i < 128; ++i)
      w[i] = static_cast<float>(i % 5 - 2) / 8;
    const void *inputs[] = {x, w};
    void *outputs[] = {y};
    context.run(inputs, outputs);
    for (int row = 0; row < 4; ++row) { // softmax(x w)
      double e[8], sum = 0;
      for (int c = 0; c < 8; ++c) {
        double dot = 0;
        for (int k = 0; k < 16; ++k)
          dot += static_cast<double>(x[row * 16 + k]) * static_cast<double>(w[k * 8 + c]);
        sum += e[c] = std::exp(dot);
      }
      for (int c = 0; c < 8; ++c)
        EXPECT_NEAR(static_cast<double>(y[row * 8 + c]), e[c] / sum, 1e-5);
    }
  }
  EXPECT_EQ(current, 1);
}

TEST(Package, UnsafeSchedulesAreRefused) {
  Sample sample;
  sample.program.s.step.commands[1].numWaits = 0;
  TempFile file;
  writeFile(file.path, sample.bytes());
  EXPECT_NE(openMessage(file.path).find("not safe to run: step command 1 (add at model.cpp:17)"), std::string::npos)
      << openMessage(file.path);
}

TEST(Package, TruncatedFilesAreRefused) {
  const auto bytes = Sample().bytes();
  TempFile file;
  for (size_t n = 0; n < bytes.size(); n += 64) {
    writeFile(file.path, std::span(bytes).first(n));
    const std::string message = openMessage(file.path);
    ASSERT_NE(message, "") << n;
    ASSERT_TRUE(message.starts_with(file.path)) << message;
    ASSERT_TRUE(n < 8 || message.find("truncated") != std::string::npos) << n << ": " << message;
  }
  auto longer = bytes;
  longer.resize(bytes.size() + 64);
  writeFile(file.path, longer);
  EXPECT_NE(openMessage(file.path).find("extended"), std::string::npos);
}

TEST(Package, EveryDamagedByteIsNoticed) {
  // When it is opened or, in code, constants and values, where it would be used. Nothing of the sample goes unused.
  const auto bytes = Sample().bytes();
  TempFile file;
  for (size_t i = 0; i < bytes.size(); i += i < 128 ? 1 : 7)
    for (uint8_t bit : {0x01, 0x80}) {
      auto bad = bytes;
      bad[i] ^= std::byte(bit);
      writeFile(file.path, bad);
      const std::string opening = openMessage(file.path);
      const bool opens = opening.empty();
      for (const std::string &message :
           {opens ? messageOf([&] { Package::open(file.path).check(); }) : opening,
            opens ? messageOf([&] { Package::open(file.path).context(); }) : opening}) {
        ASSERT_NE(message, "") << "byte " << i;
        ASSERT_TRUE(message.starts_with(file.path)) << message;
      }
    }
}

TEST(Package, OpeningReadsNoWeights) {
  // Damaged weights are told by whoever needs them, and by nobody else.
  Sample sample;
  auto states = sample.states();
  const PackageFunction f = sample.function();
  auto bytes = packageBytes({&f, 1}, states);
  const std::byte *w = reinterpret_cast<const std::byte *>(sample.w);
  auto at = std::search(bytes.begin(), bytes.end(), w, w + sizeof(sample.w));
  ASSERT_NE(at, bytes.end());
  *at ^= std::byte(1);
  TempFile file;
  writeFile(file.path, bytes);
  const Package package = Package::open(file.path);
  EXPECT_EQ(package.stateValue("count").size(), sizeof(sample.count));
  const std::string expected = file.path + ": the package is damaged (value of state 'layer.w')";
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(messageOf([&] { package.stateValue("layer.w"); }), expected);
    EXPECT_EQ(messageOf([&] { package.context(); }), expected);
    EXPECT_EQ(messageOf([&] { package.check(); }), expected);
  }
}

TEST(Package, HostileMetadataNeverCrashes) {
  // Damage that checksums do not reveal, because whoever made it computed them: the structure's checks stand alone.
  const auto bytes = Sample().bytes();
  PackageHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  TempFile file;
  int refused = 0, opened = 0;
  for (size_t i = 0; i < header.metadataBytes; ++i)
    for (uint8_t value : {0x00, 0x7f, 0xff}) {
      if ((i + value) % 3) // a third is enough
        continue;
      auto bad = bytes;
      bad[sizeof(header) + i] = std::byte(value);
      PackageHeader h = header;
      h.metadataChecksum = checksum(std::span(bad).subspan(sizeof(h), h.metadataBytes));
      h.headerChecksum = checksum(std::as_bytes(std::span(&h, 1)).first(offsetof(PackageHeader, headerChecksum)));
      std::memcpy(bad.data(), &h, sizeof(h));
      writeFile(file.path, bad);
      try {
        const Package package = Package::open(file.path);
        ++opened;
        // What opens is safe to load. Not to run: code is trusted, and may be given other operands than it was made
        // for.
        package.executable();
      } catch (const InputError &e) {
        ASSERT_TRUE(std::string(e.what()).starts_with(file.path)) << e.what();
        ++refused;
      }
    }
  EXPECT_GT(refused, 100);
  EXPECT_GT(opened, 10);
}
