// A command line in the form of TensorFlow Serving's and abseil's, against a table of flags.
#ifndef COLCAST_SERVER_FLAGS_COMMAND_LINE_H_
#define COLCAST_SERVER_FLAGS_COMMAND_LINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/flags/table.h"

namespace colcast::flags {

// A flag of an earlier version.
struct RemovedFlag {
  std::string_view name;
  std::string_view instead;  // what to do
};

// Sets the flags of --NAME=VALUE, --NAME VALUE, --NAME and --noNAME for switches, with one dash or
// two, and those of --flagfile=FILE: one per line, # begins a comment. "--" ends them.
// INVALID_ARGUMENT for a value that a flag does not take, for a word that is no flag, and for a
// flag that the table does not have, with the flag that is closest, or what to do in its place.
Status ParseCommandLine(const std::vector<std::string>& arguments, const Table& table,
                        const std::vector<RemovedFlag>& removed);

}  // namespace colcast::flags

#endif  // COLCAST_SERVER_FLAGS_COMMAND_LINE_H_
