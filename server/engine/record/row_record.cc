#include "server/engine/record/row_record.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace colcast::engine {
namespace {

using rapidjson::Value;

bool IsTrue(const Value* value) { return value != nullptr && value->IsTrue(); }

// Whether the feature has a second column, which holds lengths.
bool IsList(const Value& feature) {
  FeatureKind kind;
  return ReadKind(feature, &kind) && (kind == FeatureKind::kVarLen || kind == FeatureKind::kRagged);
}

std::vector<std::string> ReadLists(const Value& signature) {
  std::vector<std::string> lists;
  ForEachMember(signature, "features", [&](const std::string& name, const Value& feature) {
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
  ForEachMember(recorded, "features", [&](const std::string& name, const Value& feature) {
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
  // Removes features without a domain, which earlier exports recorded as the item's. Features of a
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

// Reads the facts that transcoding tf.Examples needs. Returns why the graph's parse op must read
// them; empty if it need not.
std::string ReadTranscoding(const Value& recorded, RecordedSignatures* read) {
  const Value* const input = Member(recorded, "source_input");
  if (input != nullptr && input->IsNull()) return "its source takes tensors";
  if (read->source.empty() || !ReadText(recorded, "source_input", &read->source_input)) {
    return "colcast.json: the signature has no source";
  }
  std::string unreadable;
  ForEachMember(recorded, "features", [&](const std::string& name, const Value& entry) {
    ExampleFeature& feature = read->features.emplace_back();
    feature.name = name;
    std::string side;
    const bool is_read = ReadText(entry, "side", &side) && ReadFeature(entry, &feature);
    feature.user = side == "user";
    const DataType dtype = feature.dtype;
    if (is_read && (dtype == DT_INT64 || dtype == DT_FLOAT || dtype == DT_STRING)) return;
    unreadable = absl::StrCat("colcast.json: feature \"", name, "\" of signature \"",
                              read->columnar, "\" is not one that a server can read");
  });
  if (!unreadable.empty()) return unreadable;
  const Value* const transcoding = Member(recorded, "example_transcoding");
  if (transcoding == nullptr) return "the export predates this record; export the model again";
  if (IsTrue(transcoding)) return "";
  return transcoding->IsString() ? std::string(Text(*transcoding)) : "the export ruled it out";
}

RecordedSignatures ReadSignatures(const std::string& name, const Value& recorded) {
  RecordedSignatures read;
  read.columnar = name;
  ReadText(recorded, "source", &read.source);
  if (const Value* const late = Member(recorded, "late"); late != nullptr) {
    ReadText(*late, "signature", &read.late);
  }
  read.not_transcoded = ReadTranscoding(recorded, &read);
  ReadStages(recorded, &read);
  ForEachMember(recorded, "independence", [&](const std::string& signature, const Value& entry) {
    RowRecord& rows = read.rows[signature] = ReadRows(entry);
    rows.late = signature == read.late;
    rows.any_rounding = rows.late || IsTrue(Member(recorded, "any_rounding"));
    rows.lists = ReadLists(recorded);
  });
  return read;
}

}  // namespace

std::vector<RecordedSignatures> ReadRecordedSignatures(const rapidjson::Document& record) {
  std::vector<RecordedSignatures> read;
  ForEachMember(record, "signatures", [&](const std::string& name, const Value& recorded) {
    read.push_back(ReadSignatures(name, recorded));
  });
  return read;
}

std::vector<RecordedSignatures> ReadRecordedSignaturesOf(const std::string& directory) {
  rapidjson::Document record;
  return ReadExportRecord(directory, &record).ok() ? ReadRecordedSignatures(record)
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

// The recorded signature that serving_default copies; empty if there is none.
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
    // A tf.Example's list lengths are known only after parsing, so rows that depend on them in any
    // signature do not count as independent.
    for (const auto& [name, rows] : recorded.rows) source.independent &= rows.own_length.empty();
    const bool has_moved = recorded.source == kDefault && !copied.empty();
    by_name.emplace(has_moved ? kFormerDefault : recorded.source, source);
  }
  return by_name;
}

}  // namespace colcast::engine
