#include "server/wire/example_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "server/wire/column.h"
#include "server/wire/example_features.h"
#include "server/wire/testing.h"

namespace colcast {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr FeatureKind kFixed = FeatureKind::kFixedLen;

std::string Ints(const std::vector<uint64_t>& values) {
  return BytesField(3, BytesField(1, Varints(values)));
}
std::string Floats(const std::vector<float>& values) {
  return BytesField(2, BytesField(1, Raw(values)));
}
std::string Strings(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += BytesField(1, value);
  return BytesField(1, list);
}

std::string Entry(const std::string& name, const std::string& feature) {
  return BytesField(1, BytesField(1, name) + BytesField(2, feature));
}

using Row = std::vector<std::pair<std::string, std::string>>;  // names and Features

std::string Example(const Row& row) {
  std::string features;
  for (const auto& [name, feature] : row) features += Entry(name, feature);
  return BytesField(1, features);
}

ExampleFeature Make(std::string name, FeatureKind kind, DataType dtype,
                    std::vector<int64_t> shape = {}, std::string default_values = "") {
  ExampleFeature feature{std::move(name), kind, dtype, std::move(shape), std::move(default_values)};
  feature.required = kind == kFixed && feature.default_values.empty();
  return feature;
}

// A column as text: "[2,1] 5,7," for two rows of one value.
std::string Show(const Column& column) {
  std::string text = "[";
  for (size_t i = 0; i < column.dims.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(column.dims[i]);
  }
  text += "] ";
  int64_t count = 0;
  EXPECT_TRUE(ElementCount(column, &count).ok());
  EXPECT_TRUE(CheckValues(column, count).ok());
  if (column.dtype == DT_STRING) {
    for (const std::string& value : StringsOf(column)) text += value + ",";
    return text;
  }
  std::string memory(count * ElementSize(column.dtype), '?');
  EXPECT_TRUE(CopyValues(column, count, memory.data()).ok());
  for (int64_t i = 0; i < count; ++i) {
    int64_t integer;
    float real;
    if (column.dtype == DT_INT64) std::memcpy(&integer, &memory[i * 8], 8);
    if (column.dtype == DT_FLOAT) std::memcpy(&real, &memory[i * 4], 4);
    text += column.dtype == DT_INT64 ? std::to_string(integer) : testing::PrintToString(real);
    text += ",";
  }
  return text;
}

class ExampleDecoderTest : public testing::Test {
 protected:
  // All features but the last are the user's.
  void Parse(std::vector<ExampleFeature> features) {
    for (ExampleFeature& feature : features) feature.user = &feature != &features.back();
    ASSERT_TRUE(ExampleFeatures::Create(std::move(features), &features_).ok());
  }

  // The columns as "name [dims] values", or "refused" if the decoder leaves them to TensorFlow.
  std::vector<std::string> Decode(const std::vector<std::string>& examples) {
    examples_ = examples;  // columns may point into them
    std::vector<Bytes> views(examples_.begin(), examples_.end());
    return Show(views);
  }

  std::vector<std::string> Show(const std::vector<Bytes>& examples) {
    if (!decoder_.Decode(*features_, examples)) return {"refused"};
    std::vector<std::string> shown;
    for (const Column& column : decoder_.columns()) {
      shown.push_back(std::string(column.name) + " " + colcast::Show(column));
    }
    return shown;
  }

  std::unique_ptr<const ExampleFeatures> features_;
  std::vector<std::string> examples_;
  ExampleDecoder decoder_;
};

TEST_F(ExampleDecoderTest, AFeatureThatDiffersHasOneRowPerExample) {
  Parse({Make("id", kFixed, DT_INT64), Make("price", kFixed, DT_FLOAT),
         Make("name", kFixed, DT_STRING)});
  EXPECT_THAT(
      Decode({Example({{"id", Ints({1})}, {"price", Floats({0.5})}, {"name", Strings({"a"})}}),
              Example({{"id", Ints({300})}, {"price", Floats({2})}, {"name", Strings({"bb"})}}),
              Example({{"id", Ints({1})}, {"price", Floats({0.5})}, {"name", Strings({"a"})}})}),
      ElementsAre("id [3] 1,300,1,", "price [3] 0.5,2,0.5,", "name [3] a,bb,a,"));
  EXPECT_EQ(decoder_.repeated_bytes(), 0);
}

TEST_F(ExampleDecoderTest, AFeatureWithTheSameBytesInAllExamplesStaysOneRow) {
  Parse({Make("user", kFixed, DT_STRING), Make("age", kFixed, DT_INT64),
         Make("id", kFixed, DT_INT64)});
  const auto row = [](uint64_t id) {
    return Example({{"user", Strings({"ann"})}, {"id", Ints({id})}, {"age", Ints({33})}});
  };
  EXPECT_THAT(Decode({row(1), row(2), row(3)}),
              ElementsAre("user [1] ann,", "age [1] 33,", "id [3] 1,2,3,"));
  const std::string user = Entry("user", Strings({"ann"})) + Entry("age", Ints({33}));
  EXPECT_EQ(decoder_.repeated_bytes(), 2 * static_cast<int64_t>(user.size()));
}

TEST_F(ExampleDecoderTest, IdenticalExamplesStaySeparateRows) {
  Parse({Make("user", kFixed, DT_STRING), Make("id", kFixed, DT_INT64)});
  const std::string row = Example({{"user", Strings({"ann"})}, {"id", Ints({1})}});
  EXPECT_THAT(Decode({row, row, row}), ElementsAre("user [1] ann,", "id [3] 1,1,1,"));
}

TEST_F(ExampleDecoderTest, FeaturesAreReadInAnyOrder) {
  Parse({Make("a", kFixed, DT_INT64), Make("b", kFixed, DT_INT64), Make("c", kFixed, DT_INT64)});
  const std::string a = Ints({1}), b = Ints({2}), c = Ints({3});
  EXPECT_THAT(Decode({Example({{"a", a}, {"b", b}, {"c", c}}),
                      Example({{"c", Ints({4})}, {"b", b}, {"a", a}}),
                      Example({{"b", b}, {"a", a}, {"c", c}})}),
              ElementsAre("a [1] 1,", "b [1] 2,", "c [3] 3,4,3,"));
}

TEST_F(ExampleDecoderTest, AMissingOrEmptyFeatureGetsItsDefault) {
  Parse({Make("x", kFixed, DT_INT64, {2}, Raw<int64_t>({7, 8})),
         Make("s", kFixed, DT_STRING, {}, StringRecord("none"))});
  EXPECT_THAT(Decode({Example({}), Example({})}), ElementsAre("x [1,2] 7,8,", "s [2] none,none,"));
  EXPECT_THAT(Decode({"", Example({{"x", Ints({1, 2})}, {"s", ""}}), Example({{"x", ""}})}),
              ElementsAre("x [3,2] 7,8,1,2,7,8,", "s [3] none,none,none,"));
  EXPECT_THAT(Decode({Example({{"s", Strings({"a"})}}), ""}),
              ElementsAre("x [1,2] 7,8,", "s [2] a,none,"));
}

TEST_F(ExampleDecoderTest, AMissingFeatureWithoutDefaultIsRefused) {
  Parse({Make("x", kFixed, DT_INT64)});
  const std::string good = Example({{"x", Ints({1})}});
  EXPECT_THAT(Decode({good, good}), ElementsAre("x [2] 1,1,"));
  EXPECT_THAT(Decode({good, Example({})}), ElementsAre("refused"));
  EXPECT_THAT(Decode({"", good}), ElementsAre("refused"));
  EXPECT_THAT(Decode({good, Example({{"x", ""}})}), ElementsAre("refused"));
}

TEST_F(ExampleDecoderTest, ListsArePaddedToTheLongest) {
  Parse(
      {Make("ids", FeatureKind::kVarLen, DT_INT64), Make("tags", FeatureKind::kRagged, DT_STRING)});
  EXPECT_THAT(Decode({Example({{"ids", Ints({1})}, {"tags", Strings({"a", "b"})}}),
                      Example({{"ids", Ints({2, 3, 4})}, {"tags", Strings({})}}), ""}),
              ElementsAre("ids [3,3] 1,0,0,2,3,4,0,0,0,", "ids/length [3] 1,3,0,",
                          "tags [3,2] a,b,,,,,", "tags/length [3] 2,0,0,"));
  EXPECT_THAT(Decode({"", ""}), ElementsAre("ids [1,0] ", "ids/length [1] 0,", "tags [2,0] ",
                                            "tags/length [2] 0,0,"));
}

TEST_F(ExampleDecoderTest, SequencesArePaddedWithTheirDefault) {
  Parse({Make("points", FeatureKind::kFixedLenSequence, DT_FLOAT, {2}, Raw<float>({9})),
         Make("words", FeatureKind::kFixedLenSequence, DT_STRING)});
  EXPECT_THAT(Decode({Example({{"points", Floats({1, 2, 3, 4})}, {"words", Strings({"a"})}}),
                      Example({{"points", Floats({5, 6})}, {"words", Strings({"b"})}})}),
              ElementsAre("points [2,2,2] 1,2,3,4,5,6,9,9,", "words [2,1] a,b,"));
  EXPECT_THAT(Decode({Example({{"points", Floats({1})}})}), ElementsAre("refused"));
}

TEST_F(ExampleDecoderTest, FeaturesThatTheParseOmitsAreSkippedUnread) {
  Parse({Make("x", kFixed, DT_INT64)});
  EXPECT_THAT(Decode({Example({{"other", "no Feature"}, {"x", Ints({1})}, {"", ""}}),
                      Example({{"other", "neither"}, {"x", Ints({2})}, {"new", Ints({1})}}),
                      Example({{"x", Ints({3})}, {"other", ""}, {"other", ""}})}),
              ElementsAre("x [3] 1,2,3,"));
}

TEST_F(ExampleDecoderTest, SeveralFeaturesMessagesAreMerged) {
  Parse({Make("user", kFixed, DT_INT64), Make("id", kFixed, DT_INT64)});
  const std::string context = Example({{"user", Ints({5})}});
  EXPECT_THAT(
      Decode({context + Example({{"id", Ints({1})}}), context + Example({{"id", Ints({2})}}),
              Example({{"user", Ints({5})}, {"id", Ints({3})}})}),
      ElementsAre("user [1] 5,", "id [3] 1,2,3,"));
}

TEST_F(ExampleDecoderTest, ExamplesAreReadFromAnySlices) {
  Parse({Make("user", kFixed, DT_STRING), Make("id", kFixed, DT_INT64)});
  const std::string first = Example({{"user", Strings({"ann"})}, {"id", Ints({1})}});
  const std::string second = Example({{"user", Strings({"ann"})}, {"id", Ints({2})}});
  ForEachSlicing(first + second, [&](const Bytes& both) {
    EXPECT_THAT(Show({both.Sub(0, first.size()), both.Sub(first.size(), second.size())}),
                ElementsAre("user [1] ann,", "id [2] 1,2,"));
  });
}

TEST_F(ExampleDecoderTest, ARepeatedFeatureIsRefused) {
  Parse({Make("x", kFixed, DT_INT64)});
  const std::string once = Example({{"x", Ints({1})}});
  EXPECT_THAT(Decode({once + once}), ElementsAre("refused"));
  EXPECT_THAT(Decode({once, once + once}), ElementsAre("refused"));
  EXPECT_THAT(Decode({once, Example({{"x", Ints({2})}, {"x", Ints({1})}})}),
              ElementsAre("refused"));
}

TEST_F(ExampleDecoderTest, FeaturesOfTheWrongKindOrSizeAreRefused) {
  Parse({Make("x", kFixed, DT_INT64, {2})});
  const std::string good = Example({{"x", Ints({1, 2})}});
  for (const std::string& feature :
       {Ints({1}), Ints({1, 2, 3}), Floats({1, 2}), Strings({"1", "2"}), std::string("?")}) {
    EXPECT_THAT(Decode({Example({{"x", feature}})}), ElementsAre("refused"));
    EXPECT_THAT(Decode({good, Example({{"x", feature}})}), ElementsAre("refused"));
  }
}

TEST_F(ExampleDecoderTest, BytesThatAreNotAnExampleAreRefused) {
  Parse({Make("x", kFixed, DT_INT64)});
  const std::string good = Example({{"x", Ints({1})}});
  const std::string swapped =
      BytesField(1, BytesField(1, BytesField(2, Ints({1})) + BytesField(1, "x")));
  const std::string keyless = BytesField(1, BytesField(1, BytesField(2, Ints({1}))));
  for (const std::string& bad :
       {good + VarintField(2, 1), std::string("x"), good.substr(0, good.size() - 1), swapped,
        keyless, BytesField(1, Entry("x", Ints({1})) + VarintField(2, 1))}) {
    EXPECT_THAT(Decode({bad}), ElementsAre("refused"));
    EXPECT_THAT(Decode({good, bad}), ElementsAre("refused"));
  }
  EXPECT_THAT(Decode({}), ElementsAre("refused"));
}

TEST_F(ExampleDecoderTest, OneLongListAmongManyExamplesIsRefused) {
  Parse({Make("ids", FeatureKind::kVarLen, DT_INT64)});
  std::vector<std::string> examples(1000, Example({{"ids", Ints({1})}}));
  examples[7] = Example({{"ids", Ints(std::vector<uint64_t>(10000, 1))}});
  EXPECT_THAT(Decode(examples), ElementsAre("refused"));
}

TEST_F(ExampleDecoderTest, TheDecoderCanBeReused) {
  Parse({Make("id", kFixed, DT_INT64), Make("ids", FeatureKind::kVarLen, DT_INT64)});
  EXPECT_EQ(
      Decode({Example({{"id", Ints({1})}, {"ids", Ints({4, 5})}}), Example({{"id", Ints({2})}})})
          .size(),
      3u);
  EXPECT_THAT(Decode({Example({{"id", Floats({1})}})}), ElementsAre("refused"));
  EXPECT_THAT(decoder_.columns(), IsEmpty());
  EXPECT_THAT(Decode({Example({{"id", Ints({3})}})}),
              ElementsAre("id [1] 3,", "ids [1,0] ", "ids/length [1] 0,"));
}

using testing::HasSubstr;

Status Create(std::vector<ExampleFeature> features) {
  std::unique_ptr<const ExampleFeatures> result;
  return ExampleFeatures::Create(std::move(features), &result);
}

TEST(ExampleFeatures, FeaturesAreFoundByName) {
  std::unique_ptr<const ExampleFeatures> features;
  ASSERT_TRUE(ExampleFeatures::Create({Make("age", FeatureKind::kFixedLen, DT_INT64, {2, 3}),
                                       Make("tags", FeatureKind::kVarLen, DT_STRING)},
                                      &features)
                  .ok());
  EXPECT_EQ(features->Find("tags"), 1u);
  EXPECT_EQ(features->Find("tag"), 2u);
  EXPECT_EQ((*features)[0].size, 6);
  EXPECT_EQ((*features)[0].length_name, "");
  EXPECT_EQ((*features)[1].length_name, "tags/length");
}

TEST(ExampleFeatures, ErrorsNameUnsupportedFeatures) {
  const auto expect_refused = [](std::vector<ExampleFeature> features, const char* why) {
    const Status status = Create(std::move(features));
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message, HasSubstr("\"x\""));
    EXPECT_THAT(status.message, HasSubstr(why));
  };
  const ExampleFeature good = Make("x", kFixed, DT_INT64);
  ASSERT_TRUE(Create({good}).ok());
  EXPECT_EQ(Create({}).code, StatusCode::kInvalidArgument);
  expect_refused({good, good}, "twice");
  expect_refused({Make("x", kFixed, DT_RESOURCE)}, "DT_RESOURCE");
  expect_refused({Make("x", kFixed, DT_INT64, {-1})}, "shape");
  expect_refused({Make("x", kFixed, DT_INT64, {1 << 20, 2})}, "shape");
  expect_refused({Make("x", FeatureKind::kVarLen, DT_INT64, {2})}, "shape");
  expect_refused({Make("x", FeatureKind::kFixedLenSequence, DT_INT64, {0})}, "steps");
  expect_refused({Make("x", kFixed, DT_INT64, {2}, Raw<int64_t>({1}))}, "1 default values");
  expect_refused({Make("x", kFixed, DT_STRING, {}, StringRecord("a") + StringRecord("b"))},
                 "2 default values");
  expect_refused({Make("x", FeatureKind::kVarLen, DT_INT64, {}, Raw<int64_t>({1}))},
                 "1 default values");
}

// engine/fuzz/example_fuzz.cc compares the values with TensorFlow's parser.
TEST_F(ExampleDecoderTest, OnlyListsOfOnePackedRunOrUnpackedValuesAreRead) {
  const auto read = [this](DataType dtype, const std::string& feature) {
    Parse({Make("x", FeatureKind::kVarLen, dtype)});
    return Decode({Example({{"x", feature}})})[0];
  };
  const std::string packed = BytesField(1, Varints({1, 300, ~uint64_t{0}}));
  const std::string one = BytesField(1, Varints({1})), unpacked = VarintField(1, 2);
  const std::string nine(9, '\xff');
  const std::string half = Tag(1, kFixed32Type) + Raw<float>({0.5f});
  const struct {
    DataType dtype;
    std::string feature;
    const char* shown;
  } kCases[] = {
      {DT_INT64, BytesField(3, packed), "x [1,3] 1,300,-1,"},
      {DT_INT64, BytesField(3, unpacked + unpacked), "x [1,2] 2,2,"},
      {DT_INT64, BytesField(3, BytesField(1, "")), "x [1,0] "},
      {DT_FLOAT, BytesField(2, half + half), "x [1,2] 0.5,0.5,"},
      {DT_FLOAT, BytesField(2, ""), "x [1,0] "},
      {DT_STRING, BytesField(1, ""), "x [1,0] "},
      // Protobuf merges the lists; TensorFlow's fast parser reads only some of them.
      {DT_INT64, BytesField(3, one) + BytesField(3, one), "refused"},
      {DT_INT64, BytesField(3, one + one), "refused"},
      {DT_INT64, BytesField(3, one + unpacked), "refused"},
      {DT_INT64, BytesField(3, unpacked + one), "refused"},
      {DT_INT64, BytesField(3, one) + VarintField(9, 1), "refused"},
      {DT_INT64, BytesField(2, ""), "refused"},
      {DT_STRING, BytesField(3, ""), "refused"},
      {DT_INT64, "\x1a\x05\x0a\x01\x01", "refused"},          // cut off
      {DT_INT64, "\x1a\x03\x0a\x02\x01", "refused"},          // the run claims more bytes
      {DT_INT64, "\x1a\x03\x0a\x01\x81", "refused"},          // the varint does not end
      {DT_FLOAT, "\x12\x05\x0a\x03\x01\x02\x03", "refused"},  // not a whole number of floats
      {DT_FLOAT, "\x12\x03\x0d\x01\x02", "refused"},
      {DT_STRING, "\x0a\x03\x0a\x05\x61", "refused"},
      {DT_INT64, BytesField(3, BytesField(1, nine + "\x01")), "x [1,1] -1,"},
      {DT_INT64, BytesField(3, BytesField(1, nine + "\x02")), "refused"},  // beyond 64 bits
      {DT_INT64, BytesField(3, BytesField(1, nine + "\x81\x01")), "refused"},
  };
  for (const auto& [dtype, feature, shown] : kCases) {
    EXPECT_EQ(read(dtype, feature), shown) << testing::PrintToString(feature);
  }
}

}  // namespace
}  // namespace colcast
