// Tests single inputs; serving_patches/expand_inputs_test.cc builds whole requests.
#include "serving_patches/signature_inputs.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace colcast {
namespace {

using tensorflow::SignatureDef;
using ::testing::ElementsAre;

// Inputs "item" and "user", and "price" with a default of one row: columns of floats.
SignatureDef Ranking() {
  SignatureDef signature;
  for (const char* const alias : {"price", "item", "user"}) {
    tensorflow::TensorInfo& info = (*signature.mutable_inputs())[alias];
    info.set_name(std::string("in_") + alias + ":0");
    info.set_dtype(tensorflow::DT_FLOAT);
    info.mutable_tensor_shape()->add_dim()->set_size(-1);
  }
  tensorflow::TensorProto& price = (*signature.mutable_defaults())["price"];
  price.set_dtype(tensorflow::DT_FLOAT);
  price.mutable_tensor_shape()->add_dim()->set_size(1);
  price.add_float_val(9.5);
  return signature;
}

SignatureInputs Prepared(const SignatureDef& signature,
                         const SignatureInputs::Limits& limits = {}) {
  absl::StatusOr<SignatureInputs> inputs = SignatureInputs::Create(signature, limits);
  if (!inputs.ok()) ADD_FAILURE() << inputs.status();
  return *std::move(inputs);
}

class FloatRows final : public ColumnSource {
 public:
  explicit FloatRows(int64_t rows) : dims_{rows} {}
  tensorflow::DataType dtype() const override { return tensorflow::DT_FLOAT; }
  absl::Span<const int64_t> dims() const override { return dims_; }
  double ExtraBytes(int64_t copies) const override { return copies > 1 ? 4.0 * copies : 0; }
  absl::Status BuildTensor(const tensorflow::TensorShape&, tensorflow::Tensor*) const override {
    return absl::InvalidArgumentError("its content does not fit");
  }

 private:
  Dims dims_;
};

const FloatRows kOneRow(1), kThreeRows(3);

// Plans a request with three items, one user, and perhaps inputs that are not in the signature.
absl::Status Planned(const SignatureInputs& inputs, std::vector<absl::string_view> unknown = {}) {
  std::vector<const ColumnSource*> columns(inputs.inputs().size());
  columns[inputs.Find("item")] = &kThreeRows;
  columns[inputs.Find("user")] = &kOneRow;
  ExpansionPlan plan;
  return inputs.Plan(columns, unknown, &plan);
}

TEST(SignatureInputsTest, InputsAreOrderedByAlias) {
  const SignatureInputs inputs = Prepared(Ranking());
  EXPECT_THAT(inputs.feed_names(), ElementsAre("in_item:0", "in_price:0", "in_user:0"));
  EXPECT_EQ(inputs.inputs()[1].alias, "price");
  for (const int likely : {-7, -1, 0, 2, 99}) {
    EXPECT_EQ(inputs.Find("user", likely), 2);
    EXPECT_EQ(inputs.Find("in_user:0", likely), -1);
  }
}

TEST(SignatureInputsTest, TheLimitCoversCopiesOfRowsAndDefaults) {
  for (const int64_t max_bytes : {23, 24}) {
    SignatureInputs::Limits limits;
    limits.max_expanded_bytes = max_bytes;
    const absl::Status status = Planned(Prepared(Ranking(), limits));
    EXPECT_EQ(status.code(),
              max_bytes == 24 ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted);
  }
  SignatureInputs::Limits limits;
  limits.max_rows = 2;
  EXPECT_EQ(Planned(Prepared(Ranking(), limits)).message(),
            "the request has N = 3 rows; max_request_rows is 2");
}

TEST(SignatureInputsTest, ExtraBytesAreComputedOnlyIfTheirBoundExceedsTheLimit) {
  SignatureInputs::Limits limits;
  limits.max_expanded_bytes = 24;  // 12 of them for the default of "price"
  const SignatureInputs inputs = Prepared(Ranking(), limits);
  const ReceivedShape item = {false, tensorflow::DT_FLOAT, kThreeRows.dims()};
  const ReceivedShape user = {false, tensorflow::DT_FLOAT, kOneRow.dims()};
  for (const double most_bytes : {12, 13}) {
    int asked = 0;
    const auto extra_bytes = [&asked](size_t, int64_t) { return static_cast<double>(++asked); };
    ExpansionPlan plan;
    EXPECT_TRUE(inputs.PlanShapes({item, {}, user}, most_bytes, extra_bytes, &plan).ok());
    EXPECT_EQ(asked, most_bytes == 12 ? 0 : 2);
  }
}

TEST(SignatureInputsTest, AMisspeltInputIsUnknownAndMissing) {
  SignatureDef signature = Ranking();
  signature.mutable_defaults()->clear();
  EXPECT_EQ(Planned(Prepared(signature), {"prize"}).message(),
            R"(input "prize" is not in the signature; )"
            R"(input "price" is missing and has no default (declared float [?]))");
  const std::string long_alias(1 << 20, 'x');
  const absl::Status status = Planned(Prepared(Ranking()), {long_alias});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_LT(status.message().size(), 5000u);
}

TEST(SignatureInputsTest, AnErrorInAColumnNamesItsInput) {
  tensorflow::Tensor feed;
  const SignatureInputs inputs = Prepared(Ranking());
  EXPECT_EQ(inputs.BuildRows(2, &kOneRow, 3, &feed).message(),
            "input \"user\": its content does not fit");
}

TEST(SignatureInputsTest, ASparseInputFailsEveryRequest) {
  SignatureDef signature = Ranking();
  auto& tags = (*signature.mutable_inputs())["tags"];
  tags.mutable_coo_sparse()->set_values_tensor_name("tags_values:0");
  const absl::Status status = Planned(Prepared(signature));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the signature declares input \"tags\" as a sparse tensor (coo_sparse): "
            "only dense tensors can be fed");
}

TEST(SignatureInputsTest, AnInputWithoutADeclaredShapeTakesAnyShape) {
  SignatureDef signature = Ranking();
  (*signature.mutable_inputs())["user"].clear_tensor_shape();
  EXPECT_TRUE(Prepared(signature).inputs()[2].unknown_rank);
}

TEST(SignatureInputsTest, ErrorsNameADefaultThatDoesNotDecode) {
  SignatureDef signature = Ranking();
  (*signature.mutable_defaults())["price"].set_tensor_content("abc");
  const absl::Status status = SignatureInputs::Create(signature).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the signature's default of input \"price\" does not decode as a tensor");
}

}  // namespace
}  // namespace colcast
