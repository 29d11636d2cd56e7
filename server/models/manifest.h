// Checks that a version is complete: its export record may list the files that the export wrote.
#ifndef COLCAST_SERVER_MODELS_MANIFEST_H_
#define COLCAST_SERVER_MODELS_MANIFEST_H_

#include <string>

#include "server/base/status.h"

namespace colcast::models {

// Returns OK if there is no record or it lists no files. Returns UNAVAILABLE if the record is
// truncated, or if a file, which the error names, is missing or has another size or checksum than
// listed.
Status CheckManifest(const std::string& directory);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MANIFEST_H_
