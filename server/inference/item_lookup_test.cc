#include "server/inference/item_lookup.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include "server/items/testing.h"
#include "server/wire/column.h"
#include "server/wire/testing.h"

namespace colcast::inference {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

constexpr char kSignatures[] = R"(
  signature_def { key: "columnar" value {
    inputs { key: "price" value {} } inputs { key: "tags" value {} }
    inputs { key: "tags/length" value {} } inputs { key: "user" value {} } } }
  signature_def { key: "by_id" value {
    inputs { key: "item_id" value {} } inputs { key: "price" value {} } } }
  signature_def { key: "other" value { inputs { key: "user" value {} } } })";

class ItemLookupTest : public testing::Test {
 protected:
  ItemLookupTest() : base_(testing::TempDir() + "/item_lookup") {
    fs::remove_all(base_);
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kSignatures, &graph_));
    const items::TestFile table = items::MakeTestTable({10, 20, 30});
    Publish(1, table);
    config_.key = "item_id";
    config_.base_path = base_;
  }

  void Publish(int version, const items::TestFile& table) const {
    const std::string folder = base_ + "/" + std::to_string(version);
    fs::create_directories(folder);
    items::WriteTestFile(folder + "/table.safetensors", table.Bytes());
  }

  // Publishes version 2, in which a feature's default differs from the model's.
  void PublishUnusable() const {
    items::TestFile table = items::MakeTestTable({40});
    std::string& features = table.metadata["features"];
    features.replace(features.find("[0.5]"), 5, "[0.6]");
    Publish(2, table);
    source_->Poll();
  }

  // The features of a model that reads exactly the test table's features.
  static items::ModelFeatures Features() {
    items::ModelFeatures features;
    std::shared_ptr<const items::TableFile> file;
    EXPECT_TRUE(ReadTestFile(items::MakeTestTable({}).Bytes(), &file).ok());
    for (size_t i = 0; i < file->features().size(); ++i) {
      const ExampleFeature& feature = file->features()[i].feature;
      features["item"].emplace(feature.name, feature);
    }
    return features;
  }

  const ItemLookup& lookup() {
    if (lookup_ == nullptr) {
      source_ = std::make_unique<items::ItemTableSource>(config_);
      source_->Poll();
      lookup_ = std::make_unique<ItemLookup>(ItemSources{{source_.get()}, Features()},
                                             graph_.signature_def());
    }
    return *lookup_;
  }

  Column* AddKeys(const std::vector<int64_t>& keys) {
    keys_ = keys;
    Column* const column = request_.AddColumn("item_id");
    column->dtype = DT_INT64;
    column->dims = {static_cast<int64_t>(keys.size())};
    column->values.tensor_content = Bytes(keys_.data(), keys_.size() * sizeof(int64_t));
    return column;
  }

  // Encodes a request with these keys and, as float32, columns named by `floats`.
  static std::string Message(const std::vector<int64_t>& keys, const std::string& signature,
                             const std::vector<std::string>& floats = {}) {
    const auto input = [&](const std::string& name, int dtype, const std::string& content) {
      const std::string shape = BytesField(2, BytesField(2, VarintField(1, keys.size())));
      const std::string tensor = VarintField(1, dtype) + shape + BytesField(4, content);
      return BytesField(2, BytesField(1, name) + BytesField(2, tensor));
    };
    std::string message = BytesField(1, BytesField(3, signature));
    message += input("item_id", DT_INT64, Raw(keys));
    for (const std::string& name : floats) {
      message += input(name, DT_FLOAT, std::string(keys.size() * sizeof(float), '\0'));
    }
    return message;
  }

  // Decodes and fills the message. Returns the names of the resulting columns.
  std::vector<std::string> FilledNames(std::string message) {
    message_ = std::move(message);
    EXPECT_TRUE(DecodePredictRequest(Bytes(message_), &request_).ok());
    const Status status = Fill(request_.model_spec.signature_name);
    EXPECT_TRUE(status.ok()) << status.message;
    std::vector<std::string> names;
    for (const Column& column : request_.columns()) names.emplace_back(column.name);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status Fill(const std::string& signature = "columnar") {
    Status status = lookup().Fill(graph_.signature_def().at(signature), &request_, &unknown_);
    std::set<std::string_view> names;
    for (const Column& column : request_.columns()) {
      // DecodedRequest::Find() would loop forever.
      if (!names.insert(column.name).second) throw std::logic_error("two columns of one name");
    }
    return status;
  }

  std::vector<float> Prices() const {
    std::vector<float> prices(keys_.size());
    const Column* const column = request_.Find("price");
    EXPECT_TRUE(CopyValues(*column, static_cast<int64_t>(keys_.size()), prices.data()).ok());
    return prices;
  }

  const std::string base_;
  items::ItemTableConfig config_;
  tensorflow::MetaGraphDef graph_;
  std::unique_ptr<items::ItemTableSource> source_;
  std::unique_ptr<ItemLookup> lookup_;
  std::vector<int64_t> keys_;
  std::string message_;
  DecodedRequest request_;  // points to message_
  int64_t unknown_ = 0;
};

TEST_F(ItemLookupTest, AListIsNotAddedIfOnlyItsLengthsWereSent) {
  AddKeys({20});
  request_.AddColumn("tags/length");
  ASSERT_TRUE(Fill().ok());
  EXPECT_EQ(request_.Find("tags"), nullptr);
  EXPECT_NE(request_.Find("price"), nullptr);
}

TEST_F(ItemLookupTest, MissingFeaturesAreRecomputedIfColumnsOrTablesChange) {
  const auto all = ElementsAre("price", "tags", "tags/length");
  for (int times = 0; times < 3; ++times) {
    EXPECT_THAT(FilledNames(Message({30, 10}, "columnar")), all);
    keys_ = {30, 10};
    EXPECT_THAT(Prices(), ElementsAre(30.25, 10.25));
  }
  EXPECT_THAT(FilledNames(Message({20}, "by_id")), ElementsAre("item_id", "price"));
  EXPECT_THAT(FilledNames(Message({20}, "other")), ElementsAre("item_id"));
  EXPECT_THAT(FilledNames(Message({20}, "columnar", {"price"})), all);
  keys_ = {20};
  EXPECT_THAT(Prices(), ElementsAre(0));
  EXPECT_THAT(FilledNames(Message({20}, "columnar", {"price", "tags"})),
              ElementsAre("price", "tags"));
  EXPECT_THAT(FilledNames(Message({20}, "columnar")), all);
  EXPECT_THAT(Prices(), ElementsAre(20.25));
  items::TestFile next = items::MakeTestTable({10, 20});
  next.tensors["column/price"] = items::TensorOf<float>("F32", {1, 2});
  Publish(2, next);
  source_->Poll();
  EXPECT_THAT(FilledNames(Message({20}, "columnar")), all);
  EXPECT_THAT(Prices(), ElementsAre(2));
}

TEST_F(ItemLookupTest, RequestsWithoutKeyOrFeatureStayUnchanged) {
  request_.AddColumn("user");
  ASSERT_TRUE(Fill().ok());
  EXPECT_EQ(request_.columns().size(), 1);
  AddKeys({20});
  ASSERT_TRUE(Fill("other").ok());
  EXPECT_EQ(request_.columns().size(), 2);
}

TEST_F(ItemLookupTest, AKeyIsAnInputOnlyOfSignaturesThatReadTheTable) {
  tensorflow::SignatureDef reads = graph_.signature_def().at("columnar");
  lookup().AddKeys(&reads);
  EXPECT_EQ(reads.inputs().count("item_id"), 1);
  tensorflow::SignatureDef other = graph_.signature_def().at("other");
  lookup().AddKeys(&other);
  EXPECT_EQ(other.inputs().size(), 1);
}

TEST_F(ItemLookupTest, TheErrorListsUnknownKeys) {
  AddKeys({10, 5, 20, 7});
  const Status status = Fill();
  EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message,
              HasSubstr("\"item_id\": 2 of 4 keys are not in the item table: 5, 7"));
}

TEST_F(ItemLookupTest, UnknownKeysGetDefaultsIfTheTableAllowsIt) {
  config_.defaults_for_unknown = true;
  AddKeys({10, 5});
  ASSERT_TRUE(Fill().ok());
  EXPECT_THAT(Prices(), ElementsAre(10.25, 0.5));
  EXPECT_EQ(unknown_, 1);
  EXPECT_EQ(source_->stats().unknown_keys, 1);
}

TEST_F(ItemLookupTest, RefusesKeysOfAWrongDtypeRankOrCount) {
  AddKeys({10})->dtype = DT_INT32;
  EXPECT_THAT(Fill().message, HasSubstr("DT_INT32[1], expected DT_INT64[rows]"));
  request_.Clear();
  AddKeys({10})->dims = {};
  EXPECT_THAT(Fill().message, HasSubstr("DT_INT64[], expected DT_INT64[rows]"));
  request_.Clear();
  Column* const column = AddKeys({});
  column->dims = {1 << 20};
  EXPECT_THAT(Fill().message, HasSubstr("0 keys were sent for 1048576 rows"));
}

TEST_F(ItemLookupTest, AnUnusableTableLeavesThePreviousOneInUse) {
  lookup();
  PublishUnusable();
  EXPECT_EQ(source_->stats().version, 2);
  AddKeys({10});
  ASSERT_TRUE(Fill().ok());
  EXPECT_THAT(Prices(), ElementsAre(10.25));
  EXPECT_THAT(lookup().problems(), ElementsAre(HasSubstr("\"price\" has a different default")));
}

// A table made later may have the address of a freed one.
TEST_F(ItemLookupTest, FindsTheNewestTableAtAReusedAddress) {
  lookup();
  PublishUnusable();
  const items::ItemTable* const unused = source_->table().get();
  int64_t key = 1000;
  for (; key < 1100; ++key) {
    Publish(3, items::MakeTestTable({key}));
    source_->Poll();
    if (source_->table().get() == unused) break;
  }
  AddKeys({std::min<int64_t>(key, 1099)});
  EXPECT_TRUE(Fill().ok());
}

TEST_F(ItemLookupTest, ARequestWithKeysIsRefusedWithoutATable) {
  fs::remove_all(base_);
  fs::create_directories(base_);
  AddKeys({10});
  const Status status = Fill();
  EXPECT_EQ(status.code, StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message, HasSubstr(base_));
}

}  // namespace
}  // namespace colcast::inference
