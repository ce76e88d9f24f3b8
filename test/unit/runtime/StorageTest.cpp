#include "tressel/runtime/Storage.h"

#include <cstring>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace tressel;
using namespace tressel::runtime;

TEST(Storage, IsAlignedAndHoldsItsBytes) {
  std::vector<StorageRef> all;
  for (int64_t bytes : {0, 1, 63, 64, 65, 128, 4096, 4097, 100000, 1 << 20, 5 << 20}) {
    StorageRef s = Storage::allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s->data()) % 64, 0u);
    EXPECT_EQ(s->bytes(), bytes);
    std::memset(s->data(), static_cast<int>(all.size()), static_cast<size_t>(bytes));
    all.push_back(s);
  }
  for (size_t i = 0; i < all.size(); ++i)
    for (int64_t b = 0; b < all[i]->bytes(); b += 61)
      ASSERT_EQ(static_cast<uint8_t *>(all[i]->data())[b], i);
}

TEST(Storage, CountsReferences) {
  StorageRef a = Storage::allocate(16);
  EXPECT_TRUE(a->unique());
  StorageRef b = a;
  EXPECT_FALSE(a->unique());
  b = StorageRef();
  EXPECT_TRUE(a->unique());
}

TEST(Storage, PinsAreNoHolders) {
  StorageRef a = Storage::allocate(16);
  EXPECT_TRUE(a->heldOnce());
  {
    const StoragePin pin(a), second(a);
    EXPECT_TRUE(a->heldOnce());
    EXPECT_FALSE(a->unique());
    StoragePin moved(StoragePin{a});
    EXPECT_TRUE(a->heldOnce());
    const StorageRef b = a;
    EXPECT_FALSE(a->heldOnce());
  }
  EXPECT_TRUE(a->heldOnce());
  EXPECT_TRUE(a->unique());
}

TEST(Storage, LargeBlocksAreAccountedAndReused) {
  const int64_t live = Storage::liveBytes();
  void *first;
  {
    StorageRef a = Storage::allocate(1 << 20);
    first = a->data();
    EXPECT_GE(Storage::liveBytes(), live + (1 << 20));
  }
  EXPECT_EQ(Storage::liveBytes(), live);
  EXPECT_GE(Storage::cachedBytes(), 1 << 20);
  EXPECT_EQ(Storage::allocate((1 << 20) - 100)->data(), first);
  Storage::trimCache();
  EXPECT_EQ(Storage::cachedBytes(), 0);
}

TEST(Storage, RunsTheCallersDeleterOnce) {
  int runs = 0;
  float value = 1;
  {
    StorageRef s = Storage::adopt(
        &value, 4, [](void *, void *user) { ++*static_cast<int *>(user); }, &runs);
    StorageRef t = s;
    EXPECT_TRUE(t->adopted());
    EXPECT_EQ(t->data(), &value);
  }
  EXPECT_EQ(runs, 1);
}

TEST(Storage, ImpossibleSizesAreOutOfMemory) {
  EXPECT_THROW(Storage::allocate(-1), OutOfMemory);
  try {
    Storage::allocate(int64_t(1) << 45);
    FAIL();
  } catch (const OutOfMemory &e) {
    EXPECT_NE(std::string(e.what()).find("35184372088832"), std::string::npos) << e.what();
  }
}

TEST(Storage, MovesBetweenThreads) {
  for (int round = 0; round < 100; ++round) {
    std::vector<StorageRef> made;
    for (int i = 0; i < 100; ++i)
      made.push_back(Storage::allocate(i * 100));
    std::thread([taken = std::move(made)]() mutable { taken.clear(); }).join();
  }
}
