#include "server/engine/mapping/int8_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <functional>

#include "server/engine/mapping/testing.h"
#include "server/engine/rewrites/lookup_tables.h"
#include "server/engine/session_resources.h"

namespace colcast::engine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A version whose files keep the floats of row 2 of `first`.
class Int8FilesTest : public MappingTest {
 protected:
  using Tensors = std::map<std::string, tensorflow::Tensor>;

  Int8FilesTest() {
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

  void Write(const Tensors& tensors) const {
    tensorflow::BundleWriter writer(tensorflow::Env::Default(), files_);
    for (const auto& [name, tensor] : tensors) TF_CHECK_OK(writer.Add(name, tensor));
    TF_CHECK_OK(writer.Finish());
  }
  Tensors With(const std::string& name, const tensorflow::Tensor& tensor) const {
    Tensors changed = good_;
    changed[name] = tensor;
    return changed;
  }

  absl::StatusOr<Int8Files> Map(const std::set<std::string>& variables = {"first"}) const {
    return MapInt8Tables(directory_, variables, session_.get());
  }
  absl::StatusOr<std::shared_ptr<const Int8Table>> Table(const std::string& variable) const {
    return (*Int8Tables::In(*ResourcesOf(session_.get())))->Find(variable);
  }
  std::vector<std::string> Keep(const std::map<std::string, TablesRead>& served) const {
    return KeepReadForms({"first"}, served, session_.get());
  }
  static std::vector<float> RowOf(const Int8Table& table, int64_t id) {
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
    EXPECT_FALSE(Table("first").ok());
  }

  static constexpr int64_t kRowBytes = kWidth + 2;
  const std::string files_ = directory_ + "/int8/tables";
  const std::unique_ptr<tensorflow::Session> session_ = Restored();
  Tensors good_;
};

TEST_F(Int8FilesTest, RowsAreReadFromTheFiles) {
  Write(good_);
  const auto mapped = Map({"first", "second"});
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_THAT(mapped->tables, ElementsAre("first"));
  EXPECT_THAT(mapped->note, HasSubstr("GB of tables in int8 mapped from " + files_ + ".index"));
  EXPECT_EQ(RowOf(**Table("first"), 2), std::vector<float>({7, 8, 9}));
  const std::vector<float> row = RowOf(**Table("first"), 3);
  EXPECT_EQ(row, std::vector<float>(kWidth, row[0]));
  EXPECT_THAT(MappedTables::Of(session_.get())->tables(), SizeIs(3));
  EXPECT_FALSE(Table("second").ok());
}

TEST_F(Int8FilesTest, FloatsOfATableReadOnlyInInt8AreFreed) {
  Write(good_);
  ASSERT_TRUE(Map().ok());
  EXPECT_THAT(Keep({{"scores", {{}, {"first"}}}, {"others", {{"second"}, {}}}}),
              ElementsAre("1 table in int8 alone"));
  EXPECT_EQ(RowOf(**Table("first"), 2), std::vector<float>({7, 8, 9}));
  EXPECT_FALSE(Run(session_.get(), {1}).ok());
}

TEST_F(Int8FilesTest, FloatsThatAnotherSignatureReadsStay) {
  Write(good_);
  ASSERT_TRUE(Map().ok());
  EXPECT_THAT(Keep({{"scores", {{}, {"first"}}}, {"others", {{"first"}, {}}}}),
              ElementsAre("1 table stays in float32 as well: signature \"others\" reads float32"));
  EXPECT_TRUE(Run(session_.get(), {1}).ok());
}

TEST_F(Int8FilesTest, AnInt8TableThatNoSignatureReadsIsRemoved) {
  Write(good_);
  ASSERT_TRUE(Map().ok());
  EXPECT_THAT(Keep({{"scores", {{"first"}, {}}}}), IsEmpty());
  EXPECT_FALSE(Table("first").ok());
  EXPECT_THAT(MappedTables::Of(session_.get())->tables(), SizeIs(2));
}

TEST_F(Int8FilesTest, TheErrorSaysHowToExportMissingFiles) {
  ExpectRefused("no such file; export the model with --table-type int8");
}

TEST_F(Int8FilesTest, FilesThatDoNotFitTheModelAreRefused) {
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

TEST_F(Int8FilesTest, ErrorsNameDamagedFiles) {
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
