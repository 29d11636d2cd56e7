#include "serving_patches/signature_inputs.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace colcast {
namespace {

using tensorflow::SignatureDef;
using tensorflow::Tensor;
using tensorflow::TensorProto;
using tensorflow::TensorShape;
using tensorflow::tstring;
using ::testing::ElementsAre;

template <typename Proto>
Proto Parse(const std::string& text) {
  Proto proto;
  if (!google::protobuf::TextFormat::ParseFromString(text, &proto)) ADD_FAILURE() << text;
  return proto;
}

// A user's id and history, an item's id and name, an optional price, and a scalar.
SignatureDef Ranking() {
  SignatureDef signature;
  const auto declare = [&](const std::string& alias, tensorflow::DataType dtype, int rank) {
    tensorflow::TensorInfo& info = (*signature.mutable_inputs())[alias];
    info.set_name("in_" + alias + ":0");
    info.set_dtype(dtype);
    info.mutable_tensor_shape();
    for (int i = 0; i < rank; ++i) info.mutable_tensor_shape()->add_dim()->set_size(-1);
  };
  declare("user", tensorflow::DT_INT64, 1);
  declare("history", tensorflow::DT_INT64, 2);
  declare("item", tensorflow::DT_STRING, 1);
  declare("price", tensorflow::DT_FLOAT, 1);
  declare("temperature", tensorflow::DT_FLOAT, 0);
  auto& defaults = *signature.mutable_defaults();
  defaults["price"] =
      Parse<TensorProto>("dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 9.5");
  defaults["temperature"] = Parse<TensorProto>("dtype: DT_FLOAT tensor_shape {} float_val: 0.5");
  return signature;
}

const char kUser[] = "dtype: DT_INT64 tensor_shape { dim { size: 1 } } int64_val: 405";
const char kHistory[] =
    "dtype: DT_INT64 tensor_shape { dim { size: 1 } dim { size: 2 } } int64_val: [ 7, 8 ]";
const char kItems[] =
    "dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: [ 'a', 'b', 'c' ]";

// A request that owns its data: aliases, protos and the columns that read them.
class Request {
 public:
  explicit Request(const std::vector<std::pair<std::string, std::string>>& inputs) {
    for (const auto& [alias, text] : inputs) {
      aliases_.push_back(alias);
      protos_.push_back(Parse<TensorProto>(text));
      columns_.emplace_back(protos_.back());
    }
  }
  absl::Status Build(const SignatureInputs& inputs, std::vector<Tensor>* feeds) const {
    std::vector<const ColumnSource*> columns(inputs.inputs().size());
    std::vector<absl::string_view> unknown;
    for (size_t i = 0; i < aliases_.size(); ++i) {
      const int position = inputs.Find(aliases_[i]);
      if (position < 0) {
        unknown.push_back(aliases_[i]);
      } else {
        columns[position] = &columns_[i];
      }
    }
    ExpansionPlan plan;
    absl::Status status = inputs.Plan(columns, unknown, &plan);
    return status.ok() ? inputs.BuildFeeds(columns, plan, feeds) : status;
  }

 private:
  std::deque<std::string> aliases_;
  std::deque<TensorProto> protos_;
  std::deque<ProtoColumn> columns_;
};

const std::vector<std::pair<std::string, std::string>> kUsual = {
    {"item", kItems}, {"user", kUser}, {"history", kHistory}};

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  const auto flat = tensor.flat<T>();
  return std::vector<T>(flat.data(), flat.data() + flat.size());
}

SignatureInputs Prepared(const SignatureDef& signature) {
  absl::StatusOr<SignatureInputs> inputs = SignatureInputs::Create(signature);
  if (!inputs.ok()) ADD_FAILURE() << inputs.status();
  return *std::move(inputs);
}

absl::Status BuildStatus(const SignatureDef& signature, const Request& request) {
  std::vector<Tensor> feeds;
  return request.Build(Prepared(signature), &feeds);
}

TEST(SignatureInputsTest, InputsAreOrderedByAlias) {
  const SignatureInputs inputs = Prepared(Ranking());
  EXPECT_THAT(inputs.feed_names(), ElementsAre("in_history:0", "in_item:0", "in_price:0",
                                               "in_temperature:0", "in_user:0"));
  EXPECT_EQ(inputs.Find("item"), 1);
  EXPECT_EQ(inputs.inputs()[1].alias, "item");
  EXPECT_EQ(inputs.Find("in_item:0"), -1);
}

TEST(SignatureInputsTest, BuildsOneTensorForEachInputExpandedAndDefaulted) {
  const SignatureInputs inputs = Prepared(Ranking());
  const Request request(kUsual);
  std::vector<Tensor> feeds;
  const absl::Status status = request.Build(inputs, &feeds);
  ASSERT_TRUE(status.ok()) << status;

  ASSERT_EQ(feeds.size(), 5u);
  EXPECT_EQ(feeds[0].shape(), TensorShape({3, 2}));
  EXPECT_THAT(Values<int64_t>(feeds[0]), ElementsAre(7, 8, 7, 8, 7, 8));
  EXPECT_THAT(Values<tstring>(feeds[1]), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Values<float>(feeds[2]), ElementsAre(9.5f, 9.5f, 9.5f));
  EXPECT_EQ(feeds[3].shape(), TensorShape({}));
  EXPECT_THAT(Values<float>(feeds[3]), ElementsAre(0.5f));
  EXPECT_THAT(Values<int64_t>(feeds[4]), ElementsAre(405, 405, 405));
}

TEST(SignatureInputsTest, ALikelyPositionDoesNotMislead) {
  const SignatureInputs inputs = Prepared(Ranking());
  for (const int likely : {-7, -1, 0, 4, 99}) {
    EXPECT_EQ(inputs.Find("user", likely), 4);
    EXPECT_EQ(inputs.Find("nobody", likely), -1);
  }
}

TEST(SignatureInputsTest, FeedsAreReusedByRequestsOfOtherSizes) {
  const SignatureInputs inputs = Prepared(Ranking());
  const Request three(kUsual);
  const Request one({{"item", "dtype: DT_STRING tensor_shape { dim { size: 1 } } string_val: 'z'"},
                     {"user", kUser},
                     {"history", kHistory}});
  std::vector<Tensor> feeds;
  ASSERT_TRUE(three.Build(inputs, &feeds).ok());
  ASSERT_TRUE(one.Build(inputs, &feeds).ok());
  EXPECT_THAT(Values<tstring>(feeds[1]), ElementsAre("z"));
  EXPECT_THAT(Values<float>(feeds[2]), ElementsAre(9.5f));
  EXPECT_THAT(Values<int64_t>(feeds[4]), ElementsAre(405));
}

TEST(SignatureInputsTest, RowsWithoutElementsCannotFillMemory) {
  const Request request(
      {{"item", "dtype: DT_STRING tensor_shape { dim { size: 1 } } string_val: 'z'"},
       {"user", kUser},
       {"history",
        "dtype: DT_INT64 tensor_shape { dim { size: 1000000000000 } dim { size: 0 } }"}});
  const absl::Status status = BuildStatus(Ranking(), request);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("N = 1000000000000"));
}

TEST(SignatureInputsTest, EachCopyOfAStringCountsWithItsBytes) {
  const std::string name = "string_val: '" + std::string(20000, 'u') + "'";
  const Request request(
      {{"item", "dtype: DT_STRING tensor_shape { dim { size: 60000 } } " + name},
       {"user", kUser},
       {"history", "dtype: DT_INT64 tensor_shape { dim { size: 1 } dim { size: 0 } }"}});
  const absl::Status status = BuildStatus(Ranking(), request);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("input \"item\""));
}

TEST(SignatureInputsTest, ADefaultCountsWithAllItsRows) {
  SignatureDef signature = Ranking();
  for (const char* const other : {"history", "temperature", "user"}) {
    signature.mutable_inputs()->erase(other);
  }
  (*signature.mutable_inputs())["item"].set_dtype(tensorflow::DT_FLOAT);
  const std::vector<std::pair<std::string, std::string>> sent = {
      {"item", "dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [ 1, 2, 3 ]"}};
  const Request request(sent);
  for (const int64_t max_bytes : {11, 12}) {
    SignatureInputs::Limits limits;
    limits.max_expanded_bytes = max_bytes;
    std::vector<Tensor> feeds;
    const absl::Status status = request.Build(*SignatureInputs::Create(signature, limits), &feeds);
    EXPECT_EQ(status.code(),
              max_bytes == 12 ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted);
  }
}

struct Mistake {
  std::string name;
  std::vector<std::pair<std::string, std::string>> inputs;
  std::string message;
};
std::ostream& operator<<(std::ostream& out, const Mistake& mistake) { return out << mistake.name; }

class MistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsAnInvalidArgumentThatNamesTheCulprit) {
  const absl::Status status = BuildStatus(Ranking(), Request(GetParam().inputs));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Build, MistakeTest,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"Unknown",
         {{"item", kItems}, {"user", kUser}, {"history", kHistory}, {"agee", kUser}},
         R"(input "agee" is not in the signature)"},
        {"Misspelt",
         {{"items", kItems}, {"user", kUser}, {"history", kHistory}},
         R"(input "items" is not in the signature; )"
         R"(input "item" is missing and has no default (declared string [?]))"},
        {"ContentThatDoesNotFit",
         {{"item", kItems},
          {"user", "dtype: DT_INT64 tensor_shape { dim { size: 1 } } tensor_content: 'abc'"},
          {"history", kHistory}},
         R"(input "user": not a tensor of int64 and shape [1], expected [3]: its dtype does not )"
         R"(exist or its content does not decode)"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(SignatureInputsTest, ALongAliasIsShortenedInErrors) {
  const std::string alias(1 << 20, 'x');
  const absl::Status status = BuildStatus(
      Ranking(),
      Request({{alias, kUser}, {"item", kItems}, {"user", kUser}, {"history", kHistory}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("input \"xxx"));
  EXPECT_LT(status.message().size(), 5000u);
}

TEST(SignatureInputsTest, ASparseInputFailsEveryRequest) {
  SignatureDef signature = Ranking();
  auto& tags = (*signature.mutable_inputs())["tags"];
  tags.mutable_coo_sparse()->set_values_tensor_name("tags_values:0");
  const absl::Status status = BuildStatus(signature, Request(kUsual));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the signature declares input \"tags\" as a sparse tensor (coo_sparse): "
            "only dense tensors can be fed");
}

TEST(SignatureInputsTest, ASignatureWithoutAShapeTakesAnyShape) {
  SignatureDef signature = Ranking();
  (*signature.mutable_inputs())["user"].clear_tensor_shape();
  const absl::Status status = BuildStatus(
      signature, Request({{"item", kItems}, {"user", kHistory}, {"history", kHistory}}));
  EXPECT_TRUE(status.ok()) << status;
}

TEST(SignatureInputsTest, ADefaultThatDoesNotDecodeIsNamed) {
  SignatureDef signature = Ranking();
  (*signature.mutable_defaults())["price"].set_tensor_content("abc");
  const absl::Status status = SignatureInputs::Create(signature).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the signature's default of input \"price\" does not decode as a tensor");
}

}  // namespace
}  // namespace colcast
