// Reads the record that `colcast export` writes into assets.extra/colcast.json, as far as it
// concerns tf.Examples.
#ifndef COLCAST_SERVER_ENGINE_RECORD_EXPORT_RECORD_H_
#define COLCAST_SERVER_ENGINE_RECORD_EXPORT_RECORD_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/wire/example_features.h"

namespace colcast::engine {

struct ConvertedSignature {
  std::string columnar;  // name of the signature that takes columns
  // Name of the signature that takes user columns as one row; empty if there is none.
  std::string late;
  std::string source;        // name of the signature that takes tf.Examples
  std::string source_input;  // name of its only input
  std::vector<ExampleFeature> features;
  std::string not_transcoded;  // why `columnar` must not answer for `source`; empty if it may
};

// The signatures recorded in `json`, without those whose source takes tensors. Returns
// INVALID_ARGUMENT for text that no export writes.
absl::StatusOr<std::vector<ConvertedSignature>> ReadExportRecord(std::string_view json);

// Like ReadExportRecord(), for the model in `directory`; none if it has no record.
absl::StatusOr<std::vector<ConvertedSignature>> ReadExportRecordOf(const std::string& directory);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_RECORD_EXPORT_RECORD_H_
