#include "server/engine/record/records_by_name.h"

#include <algorithm>

namespace colcast::engine {
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

// The recorded signature of which serving_default is a copy; empty if there is none.
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
    // The lengths of lists in tf.Examples are not known before parsing.
    source.independent &= source.own_length.empty();
    const bool has_moved = recorded.source == kDefault && !copied.empty();
    by_name.emplace(has_moved ? kFormerDefault : recorded.source, source);
  }
  return by_name;
}

}  // namespace colcast::engine
