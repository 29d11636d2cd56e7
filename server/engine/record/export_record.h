// What `colcast export` wrote into a model's assets.extra/colcast.json, as far as reading
// tf.Examples depends on it.
#ifndef COLCAST_SERVER_ENGINE_RECORD_EXPORT_RECORD_H_
#define COLCAST_SERVER_ENGINE_RECORD_EXPORT_RECORD_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/wire/example_features.h"

namespace colcast::engine {

// One signature that was converted.
struct ConvertedSignature {
  std::string columnar;      // takes columns
  std::string late;          // takes the user's as one row; empty if there is none
  std::string source;        // takes tf.Examples, in its only input ...
  std::string source_input;  // ... of this name
  std::vector<ExampleFeature> features;
  std::string not_transcoded;  // why `columnar` must not answer for `source`; empty if it may
};

// The signatures in the file's text, without those whose source takes tensors already.
// INVALID_ARGUMENT for what no export writes.
absl::StatusOr<std::vector<ConvertedSignature>> ReadExportRecord(std::string_view json);

// The same for the model in `directory`; none if it has no such file.
absl::StatusOr<std::vector<ConvertedSignature>> ReadExportRecordOf(const std::string& directory);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_RECORD_EXPORT_RECORD_H_
