// The files that an export wrote, as its record lists them: a version that has a list is loaded
// once all of them are there.
#ifndef COLCAST_SERVER_MODELS_MANIFEST_H_
#define COLCAST_SERVER_MODELS_MANIFEST_H_

#include <string>

#include "server/base/status.h"

namespace colcast::models {

// OK for a version without a record, or whose record lists no files. UNAVAILABLE, with its name,
// for a file that is missing, has another size or, where the list has one, another checksum; and
// for a record that does not end.
Status CheckManifest(const std::string& directory);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MANIFEST_H_
