// What a model's export recorded about its signatures: which ones answer requests with tf.Examples,
// and how rows depend on each other. The engine joins, splits and caches only what the record
// allows, which the exporter's rules decide (export/rows).
#ifndef COLCAST_SERVER_ENGINE_RECORD_ROW_RECORD_H_
#define COLCAST_SERVER_ENGINE_RECORD_ROW_RECORD_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/map.h"
#include "server/wire/feature_json.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// How a request's one-row inputs are fed beside others with N rows.
enum class OneRowInputs {
  kRepeated,  // to N rows, because the export recorded the inputs as rows
  kByTrial,   // repeated only if the signature refuses them as sent (row_trials.h)
  kAsSent,    // some input is a part of a sparse or ragged tensor, so nothing is repeated
};

// The record of one signature. If `recorded` is false, nothing is known about its rows.
struct RowRecord {
  bool recorded = false;

  OneRowInputs one_row_inputs = OneRowInputs::kRepeated;

  // Each row of every output depends only on its own input row, which is a candidate's or, in a
  // stage, one of the domain. In a late signature, each row depends only on its candidate and the
  // request's only user.
  bool independent = false;
  std::string why_not;

  // Whether rounding may change a score's last bits, so that requests may be joined without the
  // operator's consent. True for late signatures, and for others whose record says so.
  bool any_rounding = false;
  bool late = false;

  // Columns whose rows are padded beyond the number of values in NAME/length; padding is never
  // read.
  std::vector<std::string> lists;

  // Features whose longest list in a run affects the result.
  std::vector<std::string> own_length;
};

// A columnar signature and the signatures made from it.
struct RecordedSignatures {
  std::string columnar;
  std::string source;        // takes tf.Examples or tensors; empty if not recorded
  std::string source_input;  // the only input of a source that takes tf.Examples, or empty
  std::string late;          // takes user columns as one row; empty if there is none
  std::vector<ExampleFeature> features;
  std::string not_transcoded;       // why `columnar` must not answer for `source`; empty if it may
  bool many_users_per_run = false;  // the last stage takes several users
  std::vector<std::string> stages = {"user", "item"};    // domains with a stage, the user first
  std::map<std::string, std::set<std::string>> columns;  // by domain
  // The record of each signature; empty for old exports, which wrote none.
  std::map<std::string, RowRecord> rows;
};

// The record's signatures in the order of the file; empty if no export wrote the record.
std::vector<RecordedSignatures> ReadRecordedSignatures(const rapidjson::Document& record);

// Like ReadRecordedSignatures(), for the model in `directory`; empty if it has no record. A record
// that is not JSON is refused earlier, in models/version_directory.h.
std::vector<RecordedSignatures> ReadRecordedSignaturesOf(const std::string& directory);

using SignatureMap = google::protobuf::Map<std::string, tensorflow::SignatureDef>;

// A record applies to the signature that an export wrote; to that signature's source, which
// computes the same function of the same rows; and to serving_default if it is a copy of an
// exported signature (`colcast export --make-default`; the original default then has another name).
std::map<std::string, RowRecord> RecordsByName(const std::vector<RecordedSignatures>& records,
                                               const SignatureMap& signatures);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_RECORD_ROW_RECORD_H_
