// Maps the rounded forms of a model's tables that an export wrote beside the checkpoint
// (export/convert/_rounded_tables.py), so that they need not be made in memory at load.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_ROUNDED_FILES_H_
#define COLCAST_SERVER_ENGINE_MAPPING_ROUNDED_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/engine/rewrites/table_readers.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// Reads and checks the files in the version's `directory` for these float32 variables, and adds
// their rounded forms, all of one type, to the session. Returns a note for the operator, "" if
// there are no files. The error names the files if they are damaged, do not fit the variables, or
// were made for another checkpoint; then none is used.
absl::StatusOr<std::string> MapRoundedTables(const std::string& directory,
                                             const RowTypes& variables,
                                             tensorflow::Session* session);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_ROUNDED_FILES_H_
