#include "frontend/io/Npz.h"
#include "runtime/files/Safetensors.h"
#include "test/unit/frontend/Files.h"

#include <cstring>

using namespace tressel;
using namespace tressel::io;
using namespace tressel::test;

namespace {

constexpr int64_t kLimit = 1 << 20;

runtime::NpyArray array(const TensorType &type, const std::string &bytes) {
  runtime::StorageRef data = runtime::Storage::allocate(type.bytes());
  std::memcpy(data->data(), bytes.data(), bytes.size());
  return {type, data};
}
std::map<std::string, runtime::NpyArray> sample() {
  std::map<std::string, runtime::NpyArray> arrays;
  for (const FileCase &c : fileCases())
    if (c.type.dtype != bf16) // NumPy has it not
      arrays.emplace(c.name, array(c.type, c.bytes));
  return arrays;
}
void write(const std::string &path, const std::map<std::string, runtime::NpyArray> &arrays) {
  std::vector<NpzItem> items;
  for (const auto &[name, a] : arrays)
    items.push_back({name, a.type, a.data->data()});
  writeNpz(path, items);
}
void expectSample(const std::map<std::string, runtime::NpyArray> &got) {
  const auto want = sample();
  ASSERT_EQ(got.size(), want.size());
  for (const auto &[name, a] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_EQ(got.at(name).type, a.type) << name;
    EXPECT_EQ(std::memcmp(got.at(name).data->data(), a.data->data(), static_cast<size_t>(a.type.bytes())), 0) << name;
  }
}
void python(const Folder &folder, const std::string &code) {
  put(folder / "make.py", "import io, numpy, struct, zipfile\n" + code);
  ASSERT_EQ(std::system(("cd " + folder.path.string() + " && " + kPython + " make.py").c_str()), 0);
}
#define NEEDS_PYTHON()                                                                                                 \
  if (!std::filesystem::exists(kPython))                                                                               \
  GTEST_SKIP() << kPython << " is missing: run ./dev setup"

} // namespace

TEST(Npz, SurvivesTheRoundTrip) {
  const Folder folder;
  write(folder / "a.npz", sample());
  expectSample(readNpz(folder / "a.npz", kLimit));
  write(folder / "b.npz", sample());
  EXPECT_EQ(get(folder / "a.npz"), get(folder / "b.npz"));
  write(folder / "b.npz", {});
  EXPECT_TRUE(!std::filesystem::exists(folder / "b.npz") || readNpz(folder / "b.npz", kLimit).empty());
}

TEST(Npz, ReadsWhatTheReferenceWrites) {
  NEEDS_PYTHON();
  const Folder folder;
  ASSERT_EQ(filesOracle("write", folder), 0);
  expectSample(readNpz(folder / "peer.npz", kLimit));
  expectSample(readNpz(folder / "peer-packed.npz", kLimit));
}

TEST(FilesOracle, TheReferenceReadsWhatWeWrite) {
  NEEDS_PYTHON();
  const Folder folder;
  const std::vector<FileCase> cases = fileCases();
  std::vector<SafetensorsItem> items;
  for (const FileCase &c : cases)
    items.push_back({c.name, c.type, c.bytes.data()});
  write(folder / "ours.npz", sample());
  writeSafetensors(folder / "ours.safetensors", items, {{"format", "tressel"}, {"schöne", "Grüße \"\\"}});
  EXPECT_EQ(filesOracle("check", folder), 0);
  std::string bytes = get(folder / "ours.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put(folder / "ours.safetensors", bytes);
  EXPECT_NE(filesOracle("check", folder, /*quiet=*/true), 0) << "the oracle accepts anything";
}

TEST(Npz, RefusesWhatIsNoArchiveOfArrays) {
  NEEDS_PYTHON();
  const Folder folder;
  python(folder, R"(
with zipfile.ZipFile('text.npz', 'w') as z: z.writestr('readme.txt', 'hello')
with zipfile.ZipFile('bad.npz', 'w') as z: z.writestr('w.npy', 'not an array')
with zipfile.ZipFile('long.npz', 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('w.npy', bytes(3 << 20))
numpy.savez('object.npz', w=numpy.array([{}], dtype=object))
import warnings; warnings.simplefilter('ignore')
data = io.BytesIO(); numpy.save(data, numpy.arange(3))
with zipfile.ZipFile('twice.npz', 'w') as z: z.writestr('w.npy', data.getvalue()); z.writestr('w.npy', data.getvalue())
)");
  auto refused = [&](const std::string &name, std::initializer_list<std::string> texts) {
    expectInputError([&] { readNpz(folder / name, kLimit); }, texts);
    expectInputError([&] { readNpz(folder / name, kLimit); }, {folder / name});
  };
  refused("text.npz", {"'readme.txt'", "not an array"});
  refused("bad.npz", {"'w'", "not a .npy file"});
  refused("object.npz", {"'w'", "'|O'"});
  refused("twice.npz", {"damaged"});
  refused("long.npz", {"'w.npy'", "more than 1048576 bytes"});
  refused("none.npz", {"No such file"});
  put(folder / "junk.npz", "junk, no archive");
  refused("junk.npz", {"not an .npz file"});
  expectInputError([&] { readNpz(folder.path.string(), kLimit); }, {"not a regular file"});
}

TEST(Npz, RefusesBombs) {
  NEEDS_PYTHON();
  const Folder folder;
  // A directory that lies about sizes, and members that share their packed
  // bytes.
  python(folder, R"(
with zipfile.ZipFile('honest.npz', 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('w.npy', bytes(200000))
data = bytearray(open('honest.npz', 'rb').read())
entry = data.rindex(b'PK\1\2')
for where, at in ((0, 22), (entry, 24)): struct.pack_into('<I', data, where + at, 1 << 30)
open('liar.npz', 'wb').write(data)
raw = bytearray(open('honest.npz', 'rb').read())
entry = raw[raw.rindex(b'PK\1\2'):raw.rindex(b'PK\5\6')]
end = raw[raw.rindex(b'PK\5\6'):]
start = raw.rindex(b'PK\1\2')
many = b''
for i in range(200):
  e = bytearray(entry); e[46:51] = b'%05d' % i; many += e
struct.pack_into('<HHII', end, 8, 200, 200, len(many), start)
open('shared.npz', 'wb').write(bytes(raw[:start]) + many + end)
)");
  for (const char *name : {"liar.npz", "shared.npz"})
    EXPECT_THROW(readNpz(folder / name, int64_t(1) << 40), InputError) << name;
}

TEST(Npz, EveryTruncationIsAnErrorAndFlippedBitsNeverCrash) {
  const Folder folder;
  write(folder / "a.npz", {{"w", array({u8, {40}}, std::string(40, 'x'))}});
  const std::string bytes = get(folder / "a.npz");
  for (size_t n = 0; n < bytes.size(); ++n) {
    put(folder / "cut.npz", bytes.substr(0, n));
    EXPECT_THROW(readNpz(folder / "cut.npz", kLimit), InputError) << n;
  }
  int refused = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; bit += 3) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    put(folder / "flipped.npz", damaged);
    try {
      readNpz(folder / "flipped.npz", kLimit);
    } catch (const InputError &) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 8 * 128 / 3) << "at least every bit of the array and its checksum";
}

TEST(Npz, RefusesNamesThatAnArchiveCannotHold) {
  const Folder folder;
  for (const std::string &name : {std::string(), std::string("/etc"), std::string("a\0b", 3)})
    EXPECT_THROW(write(folder / "a.npz", {{name, array({u8, {1}}, "x")}}), InputError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  EXPECT_THROW(write(folder / "none/a.npz", {{"w", array({u8, {1}}, "x")}}), RuntimeError);
}
