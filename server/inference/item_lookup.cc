#include "server/inference/item_lookup.h"

#include <utility>

#include "server/items/item_columns.h"
#include "server/wire/column.h"
#include "server/wire/data_type.h"

namespace colcast::inference {
namespace {

using items::ItemTable;
using items::Keys;

constexpr size_t kMostNamed = 10;

// The keys in a request's key column.
struct SentKeys {
  Keys keys;
  std::vector<int64_t> numbers;  // numeric keys, or the offsets of text keys
  std::string texts;
};

class TextCollector final : public StringVisitor {
 public:
  explicit TextCollector(SentKeys* sent) : sent_(sent) {}
  void Set(int64_t, const Bytes& value) override {
    sent_->texts += value.ToString();
    sent_->numbers.push_back(static_cast<int64_t>(sent_->texts.size()));
  }

 private:
  SentKeys* const sent_;
};

Status ReadKeys(const Column& column, bool texts, SentKeys* sent) {
  const DataType dtype = texts ? DT_STRING : DT_INT64;
  const std::vector<int64_t>& dims = column.dims;
  const bool is_list = dims.size() == 1 || (dims.size() == 2 && dims[1] == 1);
  if (column.unknown_rank || !is_list || column.dtype != dtype) {
    return InvalidArgument("input ", Quoted(column.name), ", the item table's key, is ",
                           DataTypeName(column.dtype), ShapeName(dims), ", expected ",
                           DataTypeName(dtype), "[rows]");
  }
  int64_t count = 0;
  Status status = ElementCount(column, &count);
  if (status.ok()) status = CheckValues(column, count);
  if (!status.ok()) return status;
  if (column.values.tensor_content.empty() && column.values.count != count) {
    return InvalidArgument("input ", Quoted(column.name), ": ", column.values.count,
                           " keys were sent for ", count, " rows");
  }
  sent->keys.are_texts = texts;
  if (texts) {
    sent->numbers.push_back(0);
    TextCollector collector(sent);
    status = VisitStrings(column, count, &collector);
    sent->keys.texts = {sent->numbers, sent->texts.data()};
  } else {
    sent->numbers.resize(count);
    status = CopyValues(column, count, sent->numbers.data());
    sent->keys.numbers = sent->numbers;
  }
  return status;
}

Status UnknownKeys(const std::string& name, const Keys& keys, const std::vector<uint32_t>& numbers,
                   int64_t count, std::string_view without_default) {
  std::string named;
  size_t left = kMostNamed;
  for (size_t i = 0; i < numbers.size() && left > 0; ++i) {
    if (numbers[i] != ItemTable::kUnknown) continue;
    named += (named.empty() ? "" : ", ") + items::KeyText(keys[i], keys.are_texts);
    --left;
  }
  if (count > static_cast<int64_t>(kMostNamed)) named += ", ...";
  return InvalidArgument("input ", Quoted(name), ": ", count, " of ", numbers.size(),
                         " keys are not in the item table: ", named,
                         without_default.empty() ? "" : "; there is no default for feature ",
                         without_default.empty() ? "" : Quoted(without_default));
}

// Compares owners, not addresses: a new table may get the address of a freed one.
bool IsSame(const std::weak_ptr<const ItemTable>& a, const std::shared_ptr<const ItemTable>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

bool ReadsAny(const tensorflow::SignatureDef& signature, const ExampleFeatures& features) {
  for (size_t i = 0; i < features.size(); ++i) {
    if (signature.inputs().contains(features[i].feature.name)) return true;
  }
  return false;
}

}  // namespace

ItemLookup::ItemLookup(ItemSources sources, const Signatures& signatures)
    : features_(std::move(sources.features)), signatures_(signatures) {
  for (items::ItemTableSource* const source : sources.tables) {
    tables_.push_back(std::make_unique<Table>());
    tables_.back()->source = source;
    Choose(tables_.back().get());
  }
}

// Chooses the newest table, or keeps the previous one if the model cannot use the newest.
std::shared_ptr<const ItemLookup::Choice> ItemLookup::Choose(Table* table) const {
  const std::lock_guard<std::mutex> lock(table->mutex);
  std::shared_ptr<const ItemTable> newest = table->source->table();
  if (table->choice != nullptr && IsSame(table->choice->newest, newest)) return table->choice;
  auto choice = std::make_shared<Choice>();
  choice->newest = newest;
  if (newest == nullptr) {
    const std::string& path = table->source->config().base_path;
    choice->status = FailedPrecondition("no item table has been loaded from ", path);
  } else {
    choice->status = items::CheckFeatures(features_, newest->header().domain, newest->features());
  }
  if (choice->status.ok()) {
    choice->table = std::move(newest);
  } else if (table->choice != nullptr) {
    choice->table = table->choice->table;
  }
  if (choice->table != nullptr) {
    const ExampleFeatures& features = choice->table->features();
    for (const auto& [name, signature] : signatures_) {
      std::vector<size_t>& read = choice->features[&signature];
      for (size_t i = 0; i < features.size(); ++i) {
        if (signature.inputs().contains(features[i].feature.name)) read.push_back(i);
      }
    }
  }
  table->choice = choice;
  return choice;
}

Status ItemLookup::Fill(const tensorflow::SignatureDef& signature, DecodedRequest* request,
                        int64_t* unknown_keys) const {
  *unknown_keys = 0;
  for (const std::unique_ptr<Table>& table : tables_) {
    Status status = FillFrom(table.get(), signature, request, unknown_keys);
    if (!status.ok()) return status;
  }
  return OkStatus();
}

ItemLookup::Wanted ItemLookup::WantedOf(const Choice& choice, const std::string& key,
                                        const tensorflow::SignatureDef& signature,
                                        const DecodedRequest& request) {
  Wanted wanted;
  wanted.signature = &signature;
  const Column* const column = request.Find(key);
  if (column == nullptr) return wanted;
  wanted.key = static_cast<size_t>(column - request.columns().begin());
  wanted.is_input = signature.inputs().contains(key);
  if (choice.table == nullptr) {
    wanted.by_key = !wanted.is_input;
    return wanted;
  }
  const std::vector<size_t>& read = choice.features.find(&signature)->second;
  wanted.by_key = !read.empty();
  const auto is_sent = [&request](const std::string& name) {
    return !name.empty() && request.Find(name) != nullptr;
  };
  for (const size_t i : read) {
    const ExampleFeatures::Entry& feature = choice.table->features()[i];
    if (!is_sent(feature.feature.name) && !is_sent(feature.length_name)) {
      wanted.features.push_back(i);
    }
  }
  return wanted;
}

Status ItemLookup::FillFrom(Table* table, const tensorflow::SignatureDef& signature,
                            DecodedRequest* request, int64_t* unknown_keys) const {
  const std::string& key = table->source->config().key;
  const std::shared_ptr<const Choice> choice = Choose(table);
  std::shared_ptr<const void> of_this_request;
  std::shared_ptr<const void>* made = request->MadeOfNames(choice);
  if (made == nullptr) made = &of_this_request;
  const auto* wanted = static_cast<const Wanted*>(made->get());
  if (wanted == nullptr || wanted->signature != &signature) {
    const auto derived =
        std::make_shared<const Wanted>(WantedOf(*choice, key, signature, *request));
    *made = derived;
    wanted = derived.get();
  }
  if (!wanted->by_key) return OkStatus();
  if (choice->table == nullptr) return choice->status;
  if (!wanted->features.empty()) {
    Status status = AddFeatures(*choice, *wanted, table->source, request, unknown_keys);
    if (!status.ok()) return status;
  }
  if (!wanted->is_input) request->RemoveColumn(wanted->key);
  return OkStatus();
}

Status ItemLookup::AddFeatures(const Choice& choice, const Wanted& wanted,
                               items::ItemTableSource* source, DecodedRequest* request,
                               int64_t* unknown_keys) const {
  const Column& column = request->columns()[wanted.key];
  SentKeys sent;
  Status status = ReadKeys(column, choice.table->header().has_text_keys, &sent);
  if (!status.ok()) return status;
  std::vector<uint32_t> numbers;
  choice.table->Find(sent.keys, &numbers);
  const auto unknown = std::count(numbers.begin(), numbers.end(), ItemTable::kUnknown);
  source->Count(static_cast<int64_t>(numbers.size()), unknown);
  const bool has_defaults = source->config().defaults_for_unknown;
  const std::string_view without_default = choice.table->without_default();
  if (unknown > 0 && (!has_defaults || !without_default.empty())) {
    return UnknownKeys(source->config().key, sent.keys, numbers, unknown,
                       has_defaults ? without_default : "");
  }
  *unknown_keys += unknown;
  items::AddColumns(choice.table, std::move(numbers), wanted.features, request);
  return OkStatus();
}

void ItemLookup::AddKeys(tensorflow::SignatureDef* signature) const {
  for (const std::unique_ptr<Table>& table : tables_) {
    const std::shared_ptr<const Choice> choice = Choose(table.get());
    const std::string& key = table->source->config().key;
    if (choice->table == nullptr || signature->inputs().contains(key) ||
        !ReadsAny(*signature, choice->table->features())) {
      continue;
    }
    tensorflow::TensorInfo& input = (*signature->mutable_inputs())[key];
    input.set_dtype(choice->table->header().has_text_keys ? tensorflow::DT_STRING
                                                          : tensorflow::DT_INT64);
    input.mutable_tensor_shape()->add_dim()->set_size(-1);
  }
}

std::vector<std::string> ItemLookup::problems() const {
  std::vector<std::string> problems;
  for (const std::unique_ptr<Table>& table : tables_) {
    const Status status = Choose(table.get())->status;
    if (status.ok()) continue;
    problems.push_back("item table " + table->source->config().base_path +
                       " is not used: " + status.message);
  }
  return problems;
}

}  // namespace colcast::inference
