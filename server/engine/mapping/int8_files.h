// Int8 forms of a model's tables that an export wrote beside the checkpoint (export/convert/
// _int8_tables.py): mapped instead of made in memory at load.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_INT8_FILES_H_
#define COLCAST_SERVER_ENGINE_MAPPING_INT8_FILES_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// Gives the session the int8 forms of these float32 variables that the version in `directory` has
// files for, after reading and checking them; returns a note for the operator, "" if there are
// none. The error names the files if they are damaged, do not fit the variables, or were made for
// another checkpoint; then none is used.
absl::StatusOr<std::string> MapInt8Tables(const std::string& directory,
                                          const std::set<std::string>& variables,
                                          tensorflow::Session* session);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_INT8_FILES_H_
