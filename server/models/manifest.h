// Checks the files that an export wrote against the list in its record: a version with a list is
// loaded only once all of them exist.
#ifndef COLCAST_SERVER_MODELS_MANIFEST_H_
#define COLCAST_SERVER_MODELS_MANIFEST_H_

#include <string>

#include "server/base/status.h"

namespace colcast::models {

// Returns OK for a version without a record, or whose record lists no files. Returns UNAVAILABLE,
// with the name, for a file that is missing, has another size or, if the list has one, another
// checksum; also for a truncated record.
Status CheckManifest(const std::string& directory);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MANIFEST_H_
