#include "server/items/item_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "server/items/testing.h"

namespace colcast::items {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

class ItemTablesTest : public testing::Test {
 protected:
  ItemTablesTest() : base_(testing::TempDir() + "/item_tables") {
    fs::remove_all(base_);
    fs::create_directories(base_);
  }

  // Publishes a file as users should: writes it completely, then renames it into place.
  void Write(const std::string& path, const TestFile& file) const {
    fs::create_directories(fs::path(base_ + "/" + path).parent_path());
    WriteTestFile(base_ + "/.new", file.Bytes());
    fs::rename(base_ + "/.new", base_ + "/" + path);
  }

  static ItemTableConfig ConfigOf(const std::string& base) {
    ItemTableConfig config;
    config.model = "m";
    config.key = "item_id";
    config.base_path = base;
    return config;
  }

  static std::vector<uint32_t> Find(const ItemTableSource& source,
                                    const std::vector<int64_t>& keys) {
    Keys wanted;
    wanted.numbers = keys;
    std::vector<uint32_t> numbers;
    source.table()->Find(wanted, &numbers);
    return numbers;
  }

  const std::string base_;
  ItemTableSource source_{ConfigOf(base_)};
};

TEST_F(ItemTablesTest, AnEmptyFolderHasNoTable) {
  source_.Poll();
  EXPECT_EQ(source_.table(), nullptr);
  EXPECT_THAT(source_.stats().status.message, HasSubstr(base_));
}

TEST_F(ItemTablesTest, TheHighestVersionServes) {
  Write("9/table.safetensors", MakeTestTable({1}));
  Write("10/table.safetensors", MakeTestTable({2}));
  Write(".11/table.safetensors", MakeTestTable({3}));
  source_.Poll();
  EXPECT_EQ(source_.stats().version, 10);
  EXPECT_THAT(Find(source_, {1, 2, 3}), ElementsAre(0, 1, 0));
  EXPECT_TRUE(source_.stats().status.ok());
}

TEST_F(ItemTablesTest, DeltasAreAppliedInOrderWithoutReloadingTheTable) {
  const TestFile table = MakeTestTable({1, 2});
  Write("1/table.safetensors", table);
  source_.Poll();
  const auto before = source_.table();
  const std::string checksum = before->header().checksum;
  Write("1/delta-000002.safetensors", MakeTestDelta(checksum, 2, {5}, {}));
  source_.Poll();
  EXPECT_EQ(source_.table(), before);
  Write("1/delta-000001.safetensors", MakeTestDelta(checksum, 1, {4}, {1}));
  source_.Poll();
  EXPECT_EQ(source_.table()->number(), before->number());
  EXPECT_THAT(Find(source_, {1, 2, 4, 5}), ElementsAre(0, 2, 3, 4));
}

TEST_F(ItemTablesTest, ANewVersionIsPublishedWithItsDeltas) {
  const TestFile table = MakeTestTable({1});
  Write("1/table.safetensors", table);
  source_.Poll();
  const std::string checksum = source_.table()->header().checksum;
  Write("2/delta-000001.safetensors", MakeTestDelta(checksum, 1, {7}, {}));
  Write("2/table.safetensors", table);
  source_.Poll();
  EXPECT_EQ(source_.stats().version, 2);
  EXPECT_THAT(Find(source_, {1, 7}), ElementsAre(1, 2));
}

TEST_F(ItemTablesTest, TheOldTableServesIfTheNewOneIsMalformed) {
  Write("1/table.safetensors", MakeTestTable({1}));
  source_.Poll();
  fs::create_directories(base_ + "/2");
  WriteTestFile(base_ + "/2/table.safetensors", MakeTestTable({2}).Bytes().substr(0, 1000));
  source_.Poll();
  EXPECT_EQ(source_.stats().version, 1);
  EXPECT_THAT(source_.stats().status.message, HasSubstr("/2/table.safetensors: "));
  Write("2/table.safetensors", MakeTestTable({2}));
  source_.Poll();
  EXPECT_EQ(source_.stats().version, 2);
  EXPECT_TRUE(source_.stats().status.ok());
}

TEST_F(ItemTablesTest, AMalformedDeltaBlocksLaterDeltas) {
  Write("1/table.safetensors", MakeTestTable({1}));
  source_.Poll();
  const std::string checksum = source_.table()->header().checksum;
  TestFile wrong = MakeTestDelta(checksum, 1, {2}, {});
  wrong.metadata["checksum"] = "0";
  Write("1/delta-000001.safetensors", wrong);
  Write("1/delta-000002.safetensors", MakeTestDelta(checksum, 2, {3}, {}));
  source_.Poll();
  EXPECT_THAT(source_.stats().status.message, HasSubstr("delta-000001"));
  EXPECT_THAT(Find(source_, {1, 2, 3}), ElementsAre(1, 0, 0));
  Write("1/delta-000001.safetensors", MakeTestDelta(checksum, 1, {2}, {}));
  source_.Poll();
  EXPECT_THAT(Find(source_, {1, 2, 3}), ElementsAre(1, 2, 3));
}

TEST_F(ItemTablesTest, RefusesDeltasOfAnotherTableOrOutOfOrder) {
  Write("1/table.safetensors", MakeTestTable({1}));
  Write("1/delta-000001.safetensors", MakeTestDelta("0123", 1, {2}, {}));
  source_.Poll();
  EXPECT_EQ(source_.stats().status.code, StatusCode::kFailedPrecondition);
  const std::string checksum = source_.table()->header().checksum;
  EXPECT_THAT(source_.stats().status.message,
              HasSubstr("made for the table_checksum 0123, expected " + checksum));
  Write("1/delta-000001.safetensors", MakeTestDelta(checksum, 2, {2}, {}));
  source_.Poll();
  EXPECT_THAT(source_.stats().status.message, HasSubstr("it is delta 2, expected 1"));
  Write("1/delta-000001.safetensors", MakeTestTable({2}));
  source_.Poll();
  EXPECT_FALSE(source_.stats().status.ok());
  EXPECT_EQ(source_.table()->deltas(), 0);
}

TEST_F(ItemTablesTest, AReplacedTableIsLoadedAgain) {
  Write("1/table.safetensors", MakeTestTable({1}));
  source_.Poll();
  const uint64_t number = source_.table()->number();
  Write("1/table.safetensors", MakeTestTable({1, 2}));
  source_.Poll();
  EXPECT_GT(source_.table()->number(), number);
  EXPECT_THAT(Find(source_, {1, 2}), ElementsAre(1, 2));
}

TEST_F(ItemTablesTest, AFolderReplacedDuringALoadYieldsOneTableOrTheOther) {
  const std::vector<TestFile> files = {MakeTestTable({1, 2}), MakeTestTable({3})};
  Write("1/table.safetensors", files[0]);
  source_.Poll();
  std::atomic<bool> stop = false;
  std::thread publisher([&] {
    for (size_t i = 1; !stop; ++i) {
      const std::string folder = base_ + "/.new" + std::to_string(i);
      fs::create_directories(folder);
      WriteTestFile(folder + "/table.safetensors", files[i % 2].Bytes());
      fs::rename(base_ + "/1", folder + ".old");
      fs::rename(folder, base_ + "/1");
      fs::remove_all(folder + ".old");
    }
  });
  bool seen[2] = {};
  for (int i = 0; i < 2000 || !seen[0] || !seen[1]; ++i) {
    source_.Poll();
    const std::vector<uint32_t> found = Find(source_, {1, 2, 3});
    const bool is_second = found == std::vector<uint32_t>{0, 0, 1};
    if (!is_second) {
      EXPECT_THAT(found, ElementsAre(1, 2, 0));
    }
    seen[is_second] = true;
  }
  stop = true;
  publisher.join();
}

TEST_F(ItemTablesTest, ErrorsNameAPipeInPlaceOfATableOrDelta) {
  Write("1/table.safetensors", MakeTestTable({1}));
  source_.Poll();
  for (const std::string pipe : {"/1/delta-000001.safetensors", "/2/table.safetensors"}) {
    fs::create_directories(base_ + "/2");
    ASSERT_EQ(mkfifo((base_ + pipe).c_str(), 0600), 0);
    source_.Poll();
    EXPECT_THAT(source_.stats().status.message, HasSubstr(pipe + ": it is not a regular file"));
    EXPECT_THAT(Find(source_, {1}), ElementsAre(1));
    fs::remove(base_ + pipe);
  }
}

TEST_F(ItemTablesTest, PollNowPollsAllTables) {
  ItemTableConfig config = source_.config();
  config.poll_wait = std::chrono::hours(1);
  ItemTables tables({config});
  Write("1/table.safetensors", MakeTestTable({1}));
  tables.PollNow();
  while (tables.sources()[0]->stats().version != 1) std::this_thread::yield();
}

TEST_F(ItemTablesTest, ARemovedTableServesUntilANewOneIsLoaded) {
  Write("2/table.safetensors", MakeTestTable({2}));
  source_.Poll();
  fs::remove_all(base_ + "/2");
  source_.Poll();
  EXPECT_THAT(Find(source_, {2}), ElementsAre(1));
  EXPECT_FALSE(source_.stats().status.ok());
  Write("1/table.safetensors", MakeTestTable({1}));
  source_.Poll();
  EXPECT_EQ(source_.stats().version, 1);
}

TEST_F(ItemTablesTest, ATableWithADifferentKeyIsRefusedBeforeItsDataIsRead) {
  TestFile table = MakeTestTable({1});
  table.metadata["checksum"] = "0";  // wrong, but checked only once the data has been read
  table.metadata["key"] = "movie_id";
  Write("1/table.safetensors", table);
  source_.Poll();
  EXPECT_EQ(source_.table(), nullptr);
  EXPECT_THAT(source_.stats().status.message,
              HasSubstr("its key is \"movie_id\", expected \"item_id\""));
}

TEST_F(ItemTablesTest, AReadEndsWhenTheServerStops) {
  Write("1/table.safetensors", MakeTestTable({1}));
  bool stops = true;
  ItemTableSource source(ConfigOf(base_), [&stops] { return stops; });
  source.Poll();
  EXPECT_EQ(source.table(), nullptr);
  EXPECT_EQ(source.stats().status.code, StatusCode::kCancelled);
  stops = false;
  source.Poll();
  EXPECT_NE(source.table(), nullptr) << "the file was not at fault";
}

TEST_F(ItemTablesTest, FindsAModelsTables) {
  Write("1/table.safetensors", MakeTestTable({1}));
  ItemTableConfig other = ConfigOf(base_);
  other.model = "other";
  const ItemTables tables({ConfigOf(base_), other});
  ASSERT_EQ(tables.Of("m").size(), 1);
  EXPECT_NE(tables.Of("m")[0]->table(), nullptr);
  EXPECT_TRUE(tables.Of("none").empty());
}

}  // namespace
}  // namespace colcast::items
