#include "server/tables/overlay.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>

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

TEST_F(OverlayTest, WithoutDeltasEveryRowIsTheTables) {
  EXPECT_EQ(Read(empty_, 0), std::string(kWidth, 'f'));
  EXPECT_EQ(empty_.sequence(), 0);
  EXPECT_EQ(empty_.bytes(), 0);
}

TEST_F(OverlayTest, AChangedRowIsTheDeltasAndOthersAreNot) {
  const auto one = With(empty_, {0, 7, kRows - 1}, 1);
  EXPECT_EQ(Read(*one, 7), RowOf(7, 1));
  EXPECT_EQ(Read(*one, kRows - 1), RowOf(kRows - 1, 1));
  EXPECT_EQ(Read(*one, 6), std::string(kWidth, 'f'));
  EXPECT_EQ(Read(empty_, 7), std::string(kWidth, 'f'));
  EXPECT_EQ(one->sequence(), 1);
}

TEST_F(OverlayTest, ARowThatChangesAgainAndAgainTakesMemoryOnce) {
  std::shared_ptr<const Overlay> last = With(empty_, {5, 6}, 1);
  const int64_t bytes = last->bytes();
  for (int64_t sequence = 2; sequence < 100; ++sequence) last = With(*last, {5, 6}, sequence);
  EXPECT_EQ(last->rows(), 2);
  EXPECT_EQ(last->bytes(), bytes);
  EXPECT_EQ(Read(*last, 5), RowOf(5, 99));
}

TEST_F(OverlayTest, EachGenerationReadsItsOwnRowsForGood) {
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

}  // namespace
}  // namespace colcast::tables
