#include "server/engine/mapping/rounded_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <functional>

#include "server/engine/mapping/testing.h"
#include "server/engine/rewrites/rounded_tables.h"
#include "server/engine/session_resources.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;
using tensorflow::DT_BFLOAT16;
using tensorflow::DT_INT8;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A version whose files keep the floats of row 2 of `first`.
class RoundedFilesTest : public MappingTest {
 protected:
  using Tensors = std::map<std::string, tensorflow::Tensor>;

  RoundedFilesTest() {
    std::filesystem::create_directories(directory_ + "/int8");
    std::vector<int8_t> rows(kRows * kRowBytes, 1);
    rows[2 * kRowBytes] = static_cast<int8_t>(0xc0);
    rows[2 * kRowBytes + 1] = 0x7f;
    std::ifstream file(prefix_ + ".index", std::ios::binary);
    const std::vector<uint8_t> index{std::istreambuf_iterator<char>(file), {}};
    good_ = {{"checkpoint", AsTensor<uint8_t>(index, {static_cast<int64_t>(index.size())})},
             {"rows/first", AsTensor<int8_t>(rows, {kRows, kRowBytes})},
             {"kept_ids/first", AsTensor<int64_t>({2}, {1})},
             {"kept_rows/first", AsTensor<float>({7, 8, 9}, {1, kWidth})}};
  }

  static void Write(const Tensors& tensors, const std::string& files) {
    tensorflow::BundleWriter writer(tensorflow::Env::Default(), files);
    for (const auto& [name, tensor] : tensors) TF_CHECK_OK(writer.Add(name, tensor));
    TF_CHECK_OK(writer.Finish());
  }
  void Write(const Tensors& tensors) const { Write(tensors, files_); }
  Tensors With(const std::string& name, const tensorflow::Tensor& tensor) const {
    Tensors changed = good_;
    changed[name] = tensor;
    return changed;
  }

  absl::StatusOr<std::string> Map(const RowTypes& variables = {{"first", DT_INT8}}) const {
    return MapRoundedTables(directory_, variables, session_.get());
  }
  std::shared_ptr<const RoundedTable> Table(const std::string& variable,
                                            DataType type = DT_INT8) const {
    tensorflow::ResourceMgr* const resources = *ResourcesOf(session_.get());
    return *(*RoundedTables::In(resources))
                ->Find(resources->default_container(), variable, type, resources);
  }
  static std::vector<float> RowOf(const RoundedTable& table, int64_t id) {
    std::vector<float> row(table.width());
    table.Gather({&id, 1}, {reinterpret_cast<char*>(row.data()), 0});
    return row;
  }

  void ExpectRefused(const std::string& says) const {
    const auto note = Map();
    ASSERT_FALSE(note.ok());
    EXPECT_THAT(std::string(note.status().message()),
                AllOf(HasSubstr(files_ + ".index: "), HasSubstr(says)));
    EXPECT_THAT(MappedTables::Of(session_.get())->tables(), SizeIs(2));
    EXPECT_NEAR(RowOf(*Table("first"), 0)[1], 1, 2.0 / 251);  // made from the checkpoint's floats
  }

  static constexpr int64_t kRowBytes = kWidth + 2;
  const std::string files_ = directory_ + "/int8/tables";
  const std::unique_ptr<tensorflow::Session> session_ = Restored();
  Tensors good_;
};

TEST_F(RoundedFilesTest, RowsAreReadFromTheFiles) {
  Write(good_);
  const auto note = Map({{"first", DT_INT8}, {"second", DT_INT8}});
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_THAT(*note, HasSubstr("GB of tables in int8 mapped from " + files_ + ".index"));
  EXPECT_EQ(RowOf(*Table("first"), 2), std::vector<float>({7, 8, 9}));
  const std::vector<float> row = RowOf(*Table("first"), 3);
  EXPECT_EQ(row, std::vector<float>(kWidth, row[0]));
  EXPECT_THAT(MappedTables::Of(session_.get())->tables(), SizeIs(3));
  EXPECT_NEAR(RowOf(*Table("second"), 0)[1], -1, 2.0 / 251);  // made from the checkpoint's floats
}

TEST_F(RoundedFilesTest, RowsInBfloat16AreWidened) {
  using tensorflow::bfloat16;
  const std::string files = directory_ + "/bfloat16/tables";
  std::filesystem::create_directories(directory_ + "/bfloat16");
  Tensors tensors = {{"checkpoint", good_["checkpoint"]}};
  tensors["rows/first"] =
      AsTensor<bfloat16>(std::vector<bfloat16>(kRows * kWidth, bfloat16(0.5f)), {kRows, kWidth});
  Write(tensors, files);
  const auto note = Map({{"first", DT_BFLOAT16}, {"second", DT_BFLOAT16}});
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_THAT(*note, HasSubstr("GB of tables in bfloat16 mapped from " + files + ".index"));
  EXPECT_EQ(RowOf(*Table("first", DT_BFLOAT16), 3), std::vector<float>(kWidth, 0.5f));
  EXPECT_EQ(RowOf(*Table("second", DT_BFLOAT16), 3), std::vector<float>({-9, -10, -11}));
  tensors["rows/first"] = good_["rows/first"];
  Write(tensors, files);
  EXPECT_THAT(std::string(Map({{"first", DT_BFLOAT16}}).status().message()),
              HasSubstr("tensor rows/first is int8[10,5], expected bfloat16[10,3]"));
}

TEST_F(RoundedFilesTest, AVersionWithoutFilesHasNoNote) { EXPECT_EQ(*Map(), ""); }

TEST_F(RoundedFilesTest, FilesThatDoNotFitAreRefusedByName) {
  Write(With("checkpoint", AsTensor<uint8_t>({1}, {1})));
  ExpectRefused("made for another checkpoint");
  Write(With("rows/first", AsTensor<int8_t>(std::vector<int8_t>(15), {3, kRowBytes})));
  ExpectRefused("tensor rows/first is int8[3,5], expected int8[10,5]");
  Write(With("rows/first", AsTensor<uint8_t>(std::vector<uint8_t>(50), {kRows, kRowBytes})));
  ExpectRefused("tensor rows/first is uint8[10,5], expected int8[10,5]");
  Write(With("kept_ids/first", AsTensor<int64_t>(std::vector<int64_t>(11), {11})));
  ExpectRefused("kept_ids/first");
  Write(With("kept_ids/first", AsTensor<int64_t>({3}, {1})));
  ExpectRefused("the rows of rows/first without a scale are not those that kept_ids/first lists");
  Tensors without = good_;
  without.erase("kept_ids/first");
  Write(without);
  ExpectRefused("the rows of rows/first without a scale are not those that kept_ids/first lists");
  Write(With("kept_rows/first", AsTensor<float>({7, 8}, {1, 2})));
  ExpectRefused("tensor kept_rows/first is float[1,2], expected float[1,3]");
}

TEST_F(RoundedFilesTest, DamagedFilesAreRefusedByName) {
  const std::string data = files_ + ".data-00000-of-00001";
  Write(good_);
  {
    std::fstream file(data, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);  // a byte of rows/first, the last tensor by name
    file.write("?", 1);
  }
  ExpectRefused("rows/first");
  std::filesystem::resize_file(data, std::filesystem::file_size(data) - 1);
  ExpectRefused(data);
  std::filesystem::remove(data);
  ASSERT_EQ(mkfifo(data.c_str(), 0600), 0);
  ExpectRefused(data);
  std::filesystem::remove(data);
  ExpectRefused("tables.data");
  std::filesystem::resize_file(files_ + ".index", 20);
  ExpectRefused("");
}

}  // namespace
}  // namespace colcast::engine
