#include "server/engine/record/row_record.h"

#include <algorithm>
#include <set>
#include <utility>

#include "server/base/file.h"

namespace colcast::engine {

bool ReadRecordFile(const std::string& directory, std::string* text) {
  return ReadFile(directory + "/assets.extra/colcast.json", text).ok();
}

namespace {

using rapidjson::Value;

bool IsTrue(const Value* value) { return value != nullptr && value->IsTrue(); }

// Calls visit(name, feature) for each feature of a signature.
template <typename Visit>
void ForEachFeature(const Value& signature, Visit&& visit) {
  const Value* const features = Member(signature, "features");
  if (features == nullptr || !features->IsObject()) return;
  for (const auto& member : features->GetObject()) {
    visit(std::string(Text(member.name)), member.value);
  }
}

// Whether the feature has a second column, of lengths.
bool IsList(const Value& feature) {
  FeatureKind kind;
  return ReadKind(feature, &kind) && (kind == FeatureKind::kVarLen || kind == FeatureKind::kRagged);
}

std::vector<std::string> ReadLists(const Value& signature) {
  std::vector<std::string> lists;
  ForEachFeature(signature, [&](const std::string& name, const Value& feature) {
    if (IsList(feature)) lists.push_back(name);
  });
  return lists;
}

std::vector<std::string> ReadStrings(const Value& object, const char* name) {
  std::vector<std::string> read;
  const Value* const list = Member(object, name);
  if (list == nullptr || !list->IsArray()) return read;
  for (const Value& value : list->GetArray()) {
    if (value.IsString()) read.emplace_back(Text(value));
  }
  return read;
}

void ReadStages(const Value& recorded, RecordedSignatures* read) {
  ForEachFeature(recorded, [&](const std::string& name, const Value& feature) {
    std::string domain;
    if (!ReadText(feature, "side", &domain)) return;
    std::set<std::string>& columns = read->columns[domain];
    columns.insert(name);
    if (IsList(feature)) columns.insert(name + "/length");
  });
  read->columns.erase("candidate");
  const Value* const parts = Member(recorded, "parts");
  if (parts == nullptr) return;
  std::string users;
  read->many_users_per_run = ReadText(*parts, "users_per_run", &users) && users == "many";
  const std::vector<std::string> domains = ReadStrings(*parts, "domains");
  if (!domains.empty()) read->stages = domains;
  // Earlier exports recorded features without a domain as the item's; removes them. Features of a
  // domain without a stage stay in their domain.
  std::set<std::string>& items = read->columns["item"];
  for (const std::string& column : ReadStrings(*parts, "context_features")) items.erase(column);
}

RowRecord ReadRows(const Value& entry) {
  RowRecord rows;
  rows.recorded = true;
  rows.independent = IsTrue(Member(entry, "rows"));
  ReadText(entry, "why_not", &rows.why_not);
  rows.own_length = ReadStrings(entry, "own_length");
  return rows;
}

RecordedSignatures ReadSignatures(std::string_view name, const Value& recorded) {
  RecordedSignatures read;
  read.columnar = std::string(name);
  ReadText(recorded, "source", &read.source);
  ReadStages(recorded, &read);
  const Value* const independence = Member(recorded, "independence");
  if (independence == nullptr || !independence->IsObject()) return read;
  for (const auto& entry : independence->GetObject()) {
    read.rows[std::string(Text(entry.name))] = ReadRows(entry.value);
  }
  std::string late;
  if (const Value* const member = Member(recorded, "late"); member != nullptr) {
    ReadText(*member, "signature", &late);
  }
  for (auto& [signature, rows] : read.rows) {
    rows.late = signature == late;
    rows.any_rounding = rows.late || IsTrue(Member(recorded, "any_rounding"));
    rows.lists = ReadLists(recorded);
  }
  return read;
}

}  // namespace

std::vector<RecordedSignatures> ReadRowRecords(std::string_view json) {
  rapidjson::Document document;
  if (!ParseJson(json, &document)) return {};
  const Value* const signatures = Member(document, "signatures");
  if (signatures == nullptr || !signatures->IsObject()) return {};
  std::vector<RecordedSignatures> read;
  for (const auto& member : signatures->GetObject()) {
    read.push_back(ReadSignatures(Text(member.name), member.value));
  }
  return read;
}

std::vector<RecordedSignatures> ReadRowRecordsOf(const std::string& directory) {
  std::string text;
  return ReadRecordFile(directory, &text) ? ReadRowRecords(text)
                                          : std::vector<RecordedSignatures>();
}

namespace {

using tensorflow::SignatureDef;
using Tensors = google::protobuf::Map<std::string, tensorflow::TensorInfo>;

constexpr char kDefault[] = "serving_default";
constexpr char kFormerDefault[] = "serving_examples";

bool AreSame(const Tensors& a, const Tensors& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&b](const auto& tensor) {
           const auto found = b.find(tensor.first);
           return found != b.end() && found->second.name() == tensor.second.name();
         });
}

// The recorded signature that serving_default is a copy of; empty if there is none.
std::string CopiedToDefault(const std::map<std::string, RowRecord>& recorded,
                            const SignatureMap& signatures) {
  const auto made = signatures.find(kDefault);
  if (made == signatures.end()) return "";
  for (const auto& [name, record] : recorded) {
    const auto found = name == kDefault ? signatures.end() : signatures.find(name);
    if (found != signatures.end() && AreSame(found->second.inputs(), made->second.inputs()) &&
        AreSame(found->second.outputs(), made->second.outputs())) {
      return name;
    }
  }
  return "";
}

}  // namespace

std::map<std::string, RowRecord> RecordsByName(const std::vector<RecordedSignatures>& records,
                                               const SignatureMap& signatures) {
  std::map<std::string, RowRecord> by_name;
  for (const RecordedSignatures& recorded : records) {
    by_name.insert(recorded.rows.begin(), recorded.rows.end());
  }
  const std::string copied = CopiedToDefault(by_name, signatures);
  if (!copied.empty()) by_name[kDefault] = by_name[copied];
  for (const RecordedSignatures& recorded : records) {
    const auto columnar = recorded.rows.find(recorded.columnar);
    if (columnar == recorded.rows.end()) continue;
    RowRecord source = columnar->second;
    // A tf.Example's list lengths are known only after parsing, so rows that depend on them, in
    // whatever signature answers, do not count as independent.
    for (const auto& [name, rows] : recorded.rows) source.independent &= rows.own_length.empty();
    const bool has_moved = recorded.source == kDefault && !copied.empty();
    by_name.emplace(has_moved ? kFormerDefault : recorded.source, source);
  }
  return by_name;
}

}  // namespace colcast::engine
