// Rounded forms of a model's tables that an export wrote beside the checkpoint (export/convert/
// _rounded_tables.py): mapped instead of made in memory at load.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_ROUNDED_FILES_H_
#define COLCAST_SERVER_ENGINE_MAPPING_ROUNDED_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/engine/rewrites/table_readers.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// Gives the session the rounded forms of these float32 variables, all of one type, that the version
// in `directory` has files for, after reading and checking them; returns a note for the operator,
// "" if there are none. The error names the files if they are damaged, do not fit the variables, or
// were made for another checkpoint; then none is used.
absl::StatusOr<std::string> MapRoundedTables(const std::string& directory,
                                             const RowTypes& variables,
                                             tensorflow::Session* session);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_ROUNDED_FILES_H_
