// Flags of earlier versions. Each is refused with one line that says what to do instead.
#ifndef COLCAST_SERVER_FLAGS_REMOVED_H_
#define COLCAST_SERVER_FLAGS_REMOVED_H_

#include <vector>

#include "server/flags/table.h"

namespace colcast::flags {

const std::vector<RemovedFlag>& RemovedFlags();

}  // namespace colcast::flags

#endif  // COLCAST_SERVER_FLAGS_REMOVED_H_
