#include "server/engine/examples/example_transcoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/wire/column.h"
#include "server/wire/testing.h"

namespace colcast::engine {
namespace {

using ::testing::HasSubstr;

// serving_default takes tf.Examples with the feature `age`; columnar takes the column `age`.
class ExampleTranscoderTest : public ::testing::Test {
 protected:
  ExampleTranscoderTest() {
    Declare("serving_default", "examples", tensorflow::DT_STRING, -1);
    Declare("columnar", "age", tensorflow::DT_INT64, -1);
    Declare("columnar_late", "age", tensorflow::DT_INT64, 1);
    converted_.columnar = "columnar";
    converted_.late = "columnar_late";
    converted_.source = "serving_default";
    converted_.source_input = "examples";
    ExampleFeature& age = converted_.features.emplace_back();
    age.name = "age";
    age.dtype = DT_INT64;
    age.required = true;
  }

  void Declare(const std::string& name, const std::string& input, tensorflow::DataType dtype,
               int64_t rows) {
    const auto set = [](const std::string& tensor, tensorflow::DataType type, int64_t dim,
                        tensorflow::TensorInfo* info) {
      info->set_name(tensor + ":0");
      info->set_dtype(type);
      info->mutable_tensor_shape()->add_dim()->set_size(dim);
    };
    tensorflow::SignatureDef& signature = signatures_[name];
    signature.Clear();
    set(input, dtype, rows, &(*signature.mutable_inputs())[input]);
    set("score", tensorflow::DT_FLOAT, -1, &(*signature.mutable_outputs())["score"]);
  }

  std::string WhyNot() {
    const auto made = ExampleTranscoder::Create(converted_, signatures_);
    return made.ok() ? "" : std::string(made.status().message());
  }

  SignatureDefs signatures_;
  RecordedSignatures converted_;
};

TEST_F(ExampleTranscoderTest, SignatureNamesComeFromTheRecord) {
  const auto made = ExampleTranscoder::Create(converted_, signatures_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->source(), "serving_default");
  EXPECT_EQ((*made)->columnar(), "columnar");
  EXPECT_EQ((*made)->late(), "columnar_late");
}

TEST_F(ExampleTranscoderTest, ALateSignatureWithOtherColumnsIsNotUsed) {
  Declare("columnar_late", "years", tensorflow::DT_INT64, 1);
  const auto made = ExampleTranscoder::Create(converted_, signatures_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->late(), "");
}

TEST_F(ExampleTranscoderTest, TheFormerDefaultMayBeTheSource) {
  signatures_["serving_examples"] = signatures_["serving_default"];
  signatures_["serving_default"] = signatures_["columnar"];
  const auto made = ExampleTranscoder::Create(converted_, signatures_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->source(), "serving_examples");
}

TEST_F(ExampleTranscoderTest, ErrorsSayWhyExamplesAreNotTranscoded) {
  Declare("columnar", "years", tensorflow::DT_INT64, -1);
  EXPECT_THAT(WhyNot(), HasSubstr("does not take the recorded columns"));
  Declare("serving_default", "examples", tensorflow::DT_INT64, -1);
  EXPECT_THAT(WhyNot(), HasSubstr("no signature \"serving_default\" with a vector of strings"));
  converted_.not_transcoded = "a parse within the graph";
  EXPECT_EQ(WhyNot(), "a parse within the graph");
}

void AddNumbers(const char* name, int64_t rows, const std::vector<int64_t>& values,
                DecodedRequest* columns) {
  Column* const column = columns->AddColumn(name);
  column->dtype = DT_INT64;
  column->dims = {rows, static_cast<int64_t>(values.size()) / rows};
  column->values.tensor_content = Bytes(columns->Keep(Raw(values)));
}

void AddStrings(const char* name, int64_t rows, const std::vector<std::string>& values,
                DecodedRequest* columns) {
  Column* const column = columns->AddColumn(name);
  column->dtype = DT_STRING;
  column->dims = {rows, static_cast<int64_t>(values.size()) / rows};
  for (const std::string& value : values) column->values.AddString(Bytes(columns->Keep(value)));
}

// A row's values as text.
std::string RowOf(const Column& column, int64_t row) {
  int64_t count = 0;
  std::vector<Bytes> strings;
  if (column.dtype == DT_STRING) {
    EXPECT_TRUE(ElementCount(column, &count).ok() && AddStrings(column, count, &strings).ok());
  }
  const int64_t width = column.dims[1], of = column.dims[0] == 1 ? 0 : row;
  std::string text;
  for (int64_t i = of * width; i < (of + 1) * width; ++i) {
    if (column.dtype == DT_STRING) {
      absl::StrAppend(&text, strings[i].size(), ":", strings[i].ToString(), ";");
    } else {
      text += column.values.tensor_content.view().substr(i * sizeof(int64_t), sizeof(int64_t));
    }
  }
  return text;
}

TEST(DistinctUsersTest, EachUserIsKeptOnceWithAnIndexOfItsRows) {
  std::mt19937 random(1);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  DistinctUsers users;
  int kept = 0;
  for (int round = 0; round < 500; ++round) {
    const int64_t rows = 2 + below(12), width = 1 + below(2), people = 1 + below(6);
    std::vector<int64_t> person, ages, items;
    std::vector<std::string> words;
    for (int64_t row = 0; row < rows; ++row) {
      person.push_back(below(people));
      items.push_back(row);
      for (int64_t i = 0; i < width; ++i) {
        ages.push_back(person[row] / 2);
        words.push_back(person[row] % 2 == i ? "ab" : "a");
      }
    }
    DecodedRequest columns, sent;
    for (DecodedRequest* const to : {&columns, &sent}) {
      AddNumbers("age", rows, ages, to);
      AddStrings("words", rows, words, to);
      AddNumbers("hour", 1, {12}, to);  // one row for all users
      AddNumbers("item", rows, items, to);
    }
    const std::vector<bool> of_user = {true, true, true, false};
    std::set<std::string> distinct;
    const auto user_of = [&](const DecodedRequest& from, int64_t row) {
      return RowOf(from.columns()[0], row) + RowOf(from.columns()[1], row);
    };
    for (int64_t row = 0; row < rows; ++row) distinct.insert(user_of(sent, row));
    const auto expected = static_cast<int64_t>(distinct.size());
    const bool pays = rows >= expected * DistinctUsers::kFewestRowsPerUser;
    ASSERT_EQ(users.KeepOnce(of_user, rows, &columns), pays);
    const Column* const index = columns.Find("row_to_user");
    ASSERT_EQ(index != nullptr, pays);
    for (size_t i = 0; i < 4; ++i) {
      const bool is_kept_once = pays && i < 2;
      EXPECT_EQ(columns.columns()[i].dims[0], is_kept_once ? expected : sent.columns()[i].dims[0]);
    }
    for (int64_t row = 0; row < rows && pays; ++row) {
      int64_t user;
      std::memcpy(&user, index->values.tensor_content.data() + row * sizeof(user), sizeof(user));
      EXPECT_EQ(user_of(columns, user), user_of(sent, row));
    }
    kept += pays;
  }
  EXPECT_GT(kept, 100);
}

TEST(DistinctUsersTest, ColumnsThatIncludeRowToUserAreNotChanged) {
  DecodedRequest columns;
  AddNumbers("age", 4, {40, 40, 40, 40}, &columns);
  AddNumbers("row_to_user", 4, {7, 7, 7, 7}, &columns);
  DistinctUsers users;
  EXPECT_FALSE(users.KeepOnce({true, false}, 4, &columns));
}

}  // namespace
}  // namespace colcast::engine
