#include "server/tables/overlay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>

#include "server/tables/testing.h"

namespace colcast::tables {
namespace {

constexpr int64_t kRows = 300;
constexpr size_t kWidth = 12;

// The table's first row has an odd address, as rows in a file may.
class OverlayTest : public ::testing::Test {
 protected:
  std::string Read(const Overlay& overlay, int64_t id) const {
    overlay.Redirect(&id, 1);
    const auto address = reinterpret_cast<intptr_t>(table_) + id * static_cast<intptr_t>(kWidth);
    return {reinterpret_cast<const char*>(address), kWidth};
  }

  static std::string RowOf(int64_t id, int64_t sequence) {
    std::string row = std::to_string(id) + " " + std::to_string(sequence);
    row.resize(kWidth);
    return row;
  }

  static std::shared_ptr<const Overlay> With(const Overlay& overlay,
                                             const std::vector<int64_t>& ids, int64_t sequence) {
    std::string rows;
    for (const int64_t id : ids) rows += RowOf(id, sequence);
    return overlay.With(ids, rows.data(), sequence);
  }

  const std::string file_ = std::string(1 + kRows * kWidth, 'f');
  const char* const table_ = file_.data() + 1;
  const Overlay empty_{table_, kWidth, kRows};
};

TEST_F(OverlayTest, OnlyChangedRowsAreReadFromTheDelta) {
  const auto one = With(empty_, {0, 7, kRows - 1}, 1);
  EXPECT_EQ(Read(*one, 7), RowOf(7, 1));
  EXPECT_EQ(Read(*one, kRows - 1), RowOf(kRows - 1, 1));
  EXPECT_EQ(Read(*one, 6), std::string(kWidth, 'f'));
  EXPECT_EQ(Read(empty_, 7), std::string(kWidth, 'f'));
  EXPECT_EQ(one->sequence(), 1);
}

TEST_F(OverlayTest, ARowThatChangesRepeatedlyIsStoredOnce) {
  std::shared_ptr<const Overlay> last = With(empty_, {5, 6}, 1);
  const int64_t bytes = last->bytes();
  for (int64_t sequence = 2; sequence < 100; ++sequence) last = With(*last, {5, 6}, sequence);
  EXPECT_EQ(last->rows(), 2);
  EXPECT_EQ(last->bytes(), bytes);
  EXPECT_EQ(Read(*last, 5), RowOf(5, 99));
}

TEST_F(OverlayTest, EachOverlayKeepsReadingItsOwnRows) {
  std::mt19937 random(1);
  std::vector<std::shared_ptr<const Overlay>> overlays = {std::make_shared<Overlay>(empty_)};
  std::vector<std::map<int64_t, int64_t>> changed(1);  // per overlay: the last delta of each row
  for (int64_t sequence = 1; sequence <= 60; ++sequence) {
    changed.push_back(changed.back());
    std::vector<int64_t> ids;
    for (int64_t id = random() % 3; id < kRows; id += 1 + random() % (1 << (random() % 8))) {
      ids.push_back(id);
      changed.back()[id] = sequence;
    }
    if (ids.empty()) ids.push_back(changed.back()[0] = 0);
    overlays.push_back(With(*overlays.back(), ids, sequence));
  }
  for (size_t i = 0; i < overlays.size(); ++i) {
    for (int64_t id = 0; id < kRows; ++id) {
      const auto found = changed[i].find(id);
      const std::string expected =
          found == changed[i].end() ? std::string(kWidth, 'f') : RowOf(id, found->second);
      ASSERT_EQ(Read(*overlays[i], id), expected) << "overlay " << i << ", row " << id;
    }
    EXPECT_LE(overlays[i]->rows(), 2 * kRows);
  }
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TestFile MakeDelta() {
  TestFile file;
  file.metadata = {{"format", "colcast-rows"},
                   {"format_version", "1"},
                   {"checkpoint", "0123"},
                   {"sequence", "7"}};
  file.tensors["table"] = {"U8", {5}, "users"};
  file.tensors["ids"] = TensorOf<int64_t>("I64", {2, 5});
  file.tensors["rows"] = TensorOf<float>("F32", {1, 2, 3, 4, 5, 6}, {2, 3});
  return file;
}

Status Read(const std::string& bytes, RowDelta* delta) {
  const TestBytes aligned(bytes);
  Safetensors file(aligned.view, aligned.owner, kRowsFormat);
  return RowDelta::Read(&file, delta);
}

void ExpectWrong(const TestFile& file, const std::string& says) {
  RowDelta delta;
  const Status status = Read(file.Bytes(), &delta);
  EXPECT_EQ(status.code, StatusCode::kDataLoss);
  EXPECT_THAT(status.message, HasSubstr(says));
}

TEST(RowDeltaTest, ReadsTheFilesTableIdsAndRows) {
  const TestBytes bytes(MakeDelta().Bytes());
  Safetensors file(bytes.view, bytes.owner, kRowsFormat);
  RowDelta delta;
  ASSERT_TRUE(RowDelta::Read(&file, &delta).ok());
  EXPECT_EQ(delta.table, "users");
  EXPECT_THAT(std::vector<int64_t>(delta.ids.begin(), delta.ids.end()), ElementsAre(2, 5));
  EXPECT_EQ(delta.dtype, "F32");
  EXPECT_THAT(delta.shape, ElementsAre(2, 3));
  EXPECT_EQ(delta.row_bytes, 12);
  float first = 0;
  std::memcpy(&first, delta.rows + delta.row_bytes, sizeof(first));
  EXPECT_EQ(first, 4);
}

TEST(RowDeltaTest, RefusesIdsThatDoNotAscend) {
  for (const std::vector<int64_t>& ids : {std::vector<int64_t>{5, 5}, {5, 2}, {-1, 2}}) {
    TestFile file = MakeDelta();
    file.tensors["ids"] = TensorOf("I64", ids);
    ExpectWrong(file, "\"ids\"[");
  }
}

TEST(RowDeltaTest, RefusesMissingRows) {
  TestFile file = MakeDelta();
  file.tensors["ids"] = TensorOf<int64_t>("I64", {2, 5, 6});
  ExpectWrong(file, "\"rows\" is F32[2,3], expected a row for each of 3 ids");
  file.tensors["ids"] = TensorOf<int64_t>("I64", {}, {0});
  ExpectWrong(file, "0 rows");
  file = MakeDelta();
  file.tensors.erase("rows");
  ExpectWrong(file, "no tensor \"rows\"");
}

TEST(RowDeltaTest, RefusesAWrongFormatOrAMissingTable) {
  TestFile file = MakeDelta();
  file.metadata["format"] = "colcast-items";
  ExpectWrong(file, "format is colcast-items, expected colcast-rows");
  file = MakeDelta();
  file.tensors.erase("table");
  ExpectWrong(file, "no tensor \"table\"");
}

}  // namespace
}  // namespace colcast::tables
