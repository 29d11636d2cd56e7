// What a model's export recorded of how rows depend on each other: the only source of what may be
// joined, split and kept.
#ifndef COLCAST_SERVER_ENGINE_RECORD_ROW_RECORD_H_
#define COLCAST_SERVER_ENGINE_RECORD_ROW_RECORD_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace colcast::engine {

// Of one signature. Nothing is known unless it is `recorded`.
struct RowRecord {
  bool recorded = false;

  // Every output has a row per candidate (or per user or item of a stage) that depends on its own
  // row alone: of a late signature, on its own candidate and the request's one user.
  bool independent = false;
  std::string why_not;

  // Its last bits are nobody's business: what runs with a row may change them, unasked. So it is
  // for late signatures, and for others that say so.
  bool any_rounding = false;
  bool late = false;

  // Columns that are padded behind NAME/length values, and read no further.
  std::vector<std::string> lists;

  // Features on whose greatest length in a run the result depends.
  std::vector<std::string> own_length;
};

// A columnar signature and those made from it.
struct RecordedSignatures {
  std::string columnar;
  std::string source;               // takes tf.Examples or tensors; empty if none is recorded
  bool many_users_per_run = false;  // of the last stage
  std::vector<std::string> stages = {"user", "item"};    // domains with a stage, users first
  std::map<std::string, std::set<std::string>> columns;  // by domain
  std::map<std::string, RowRecord> rows;  // by signature; empty: exported before it was recorded
};

// In the order of the file's text; nothing where it is none that an export writes.
std::vector<RecordedSignatures> ReadRowRecords(std::string_view json);

// The same of the model in `directory`; none if it has no such file.
std::vector<RecordedSignatures> ReadRowRecordsOf(const std::string& directory);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_RECORD_ROW_RECORD_H_
