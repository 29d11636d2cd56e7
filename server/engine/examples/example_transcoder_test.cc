#include "server/engine/examples/example_transcoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

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

TEST_F(ExampleTranscoderTest, ItsSignaturesAreThoseTheExportWrote) {
  const auto made = ExampleTranscoder::Create(converted_, signatures_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->source(), "serving_default");
  EXPECT_EQ((*made)->columnar(), "columnar");
  EXPECT_EQ((*made)->late(), "columnar_late");
}

TEST_F(ExampleTranscoderTest, ALateSignatureOfOtherColumnsIsNone) {
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

TEST_F(ExampleTranscoderTest, ItSaysWhyItCannotAnswer) {
  Declare("columnar", "years", tensorflow::DT_INT64, -1);
  EXPECT_THAT(WhyNot(), HasSubstr("does not take the recorded columns"));
  Declare("serving_default", "examples", tensorflow::DT_INT64, -1);
  EXPECT_THAT(WhyNot(), HasSubstr("no signature \"serving_default\" with a vector of strings"));
  converted_.not_transcoded = "a parse within the graph";
  EXPECT_EQ(WhyNot(), "a parse within the graph");
}

using ::testing::ElementsAre;

class DistinctUsersTest : public ::testing::Test {
 protected:
  void AddNumbers(const char* name, std::vector<int64_t> dims, const std::vector<int64_t>& values) {
    Column* const column = columns_.AddColumn(name);
    column->dtype = DT_INT64;
    column->dims = std::move(dims);
    column->values.tensor_content = Bytes(columns_.Keep(Raw(values)));
  }
  void AddStrings(const char* name, std::vector<int64_t> dims,
                  const std::vector<std::string>& values) {
    Column* const column = columns_.AddColumn(name);
    column->dtype = DT_STRING;
    column->dims = std::move(dims);
    for (const std::string& value : values) {
      column->values.AddString(Bytes(columns_.Keep(value)));
    }
  }

  std::vector<int64_t> Numbers(const char* name) const {
    const std::string_view bytes = columns_.Find(name)->values.tensor_content.view();
    std::vector<int64_t> values(bytes.size() / sizeof(int64_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::vector<std::string> Strings(const char* name) const {
    std::vector<std::string> values;
    for (const Bytes& value : columns_.Find(name)->values.strings) {
      values.push_back(value.ToString());
    }
    return values;
  }
  const std::vector<int64_t>& Dims(const char* name) const { return columns_.Find(name)->dims; }

  DecodedRequest columns_;
  DistinctUsers users_;
};

TEST_F(DistinctUsersTest, AUserIsARowInTheOrderTheyFirstCome) {
  AddNumbers("age", {5}, {40, 30, 40, 40, 30});
  AddNumbers("item", {5}, {1, 2, 3, 4, 5});
  ASSERT_TRUE(users_.KeepOnce({true, false}, 5, &columns_));
  EXPECT_THAT(Numbers("age"), ElementsAre(40, 30));
  EXPECT_THAT(Dims("age"), ElementsAre(2));
  EXPECT_THAT(Numbers("row_to_user"), ElementsAre(0, 1, 0, 0, 1));
  EXPECT_THAT(Dims("row_to_user"), ElementsAre(5));
  EXPECT_THAT(Numbers("item"), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(DistinctUsersTest, UsersDifferIfAnyOfTheirColumnsDoes) {
  AddNumbers("age", {6}, {40, 40, 40, 40, 30, 30});
  AddStrings("city", {6}, {"a", "b", "a", "b", "a", "a"});
  ASSERT_TRUE(users_.KeepOnce({true, true}, 6, &columns_));
  EXPECT_THAT(Numbers("age"), ElementsAre(40, 40, 30));
  EXPECT_THAT(Strings("city"), ElementsAre("a", "b", "a"));
  EXPECT_THAT(Numbers("row_to_user"), ElementsAre(0, 1, 0, 1, 2, 2));
}

TEST_F(DistinctUsersTest, RowsOfSeveralElementsStayWhole) {
  AddNumbers("history", {4, 2}, {1, 2, 1, 3, 1, 2, 1, 3});
  AddStrings("words", {4, 2}, {"a", "b", "a", "", "a", "b", "a", ""});
  ASSERT_TRUE(users_.KeepOnce({true, true}, 4, &columns_));
  EXPECT_THAT(Numbers("history"), ElementsAre(1, 2, 1, 3));
  EXPECT_THAT(Dims("history"), ElementsAre(2, 2));
  EXPECT_THAT(Strings("words"), ElementsAre("a", "b", "a", ""));
  EXPECT_THAT(Dims("words"), ElementsAre(2, 2));
}

TEST_F(DistinctUsersTest, WhereOneStringEndsMatters) {
  AddStrings("words", {4, 2}, {"ab", "c", "a", "bc", "ab", "c", "a", "bc"});
  ASSERT_TRUE(users_.KeepOnce({true}, 4, &columns_));
  EXPECT_THAT(Numbers("row_to_user"), ElementsAre(0, 1, 0, 1));
}

TEST_F(DistinctUsersTest, AColumnOfOneRowIsEverybodys) {
  AddNumbers("hour", {1}, {12});
  AddNumbers("age", {4}, {40, 30, 40, 30});
  ASSERT_TRUE(users_.KeepOnce({true, true}, 4, &columns_));
  EXPECT_THAT(Numbers("hour"), ElementsAre(12));
  EXPECT_THAT(Dims("hour"), ElementsAre(1));
  EXPECT_THAT(Numbers("row_to_user"), ElementsAre(0, 1, 0, 1));
}

TEST_F(DistinctUsersTest, WithFewRowsPerUserNothingIsChanged) {
  AddNumbers("age", {5}, {40, 30, 20, 40, 30});
  ASSERT_FALSE(users_.KeepOnce({true}, 5, &columns_));
  EXPECT_THAT(Numbers("age"), ElementsAre(40, 30, 20, 40, 30));
  EXPECT_THAT(Dims("age"), ElementsAre(5));
  EXPECT_EQ(columns_.Find("row_to_user"), nullptr);
}

TEST_F(DistinctUsersTest, AModelsOwnRowToUserIsLeftAlone) {
  AddNumbers("age", {4}, {40, 40, 40, 40});
  AddNumbers("row_to_user", {4}, {7, 7, 7, 7});
  ASSERT_FALSE(users_.KeepOnce({true, false}, 4, &columns_));
  EXPECT_THAT(Numbers("row_to_user"), ElementsAre(7, 7, 7, 7));
}

TEST_F(DistinctUsersTest, IsMadeToBeUsedAgain) {
  AddNumbers("age", {4}, {40, 40, 30, 30});
  ASSERT_TRUE(users_.KeepOnce({true}, 4, &columns_));
  columns_.Clear();
  AddNumbers("age", {2}, {20, 20});
  ASSERT_TRUE(users_.KeepOnce({true}, 2, &columns_));
  EXPECT_THAT(Numbers("age"), ElementsAre(20));
  EXPECT_THAT(Numbers("row_to_user"), ElementsAre(0, 0));
}

}  // namespace
}  // namespace colcast::engine
