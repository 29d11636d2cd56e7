// Parses a command line in the syntax of TensorFlow Serving and abseil, using a table of flags.
#ifndef COLCAST_SERVER_FLAGS_COMMAND_LINE_H_
#define COLCAST_SERVER_FLAGS_COMMAND_LINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/flags/table.h"

namespace colcast::flags {

// A flag that an earlier version had.
struct RemovedFlag {
  std::string_view name;
  std::string_view instead;  // what to do instead
};

// Sets the flags of --NAME=VALUE, --NAME VALUE and, for switches, --NAME and --noNAME, with one
// dash or two; also those in --flagfile=FILE: one per line, # begins a comment. "--" ends the
// flags. INVALID_ARGUMENT for an invalid value, for a word that is not a flag, and for an unknown
// flag, with the closest flag or what to do instead.
Status ParseCommandLine(const std::vector<std::string>& arguments, const Table& table,
                        const std::vector<RemovedFlag>& removed);

}  // namespace colcast::flags

#endif  // COLCAST_SERVER_FLAGS_COMMAND_LINE_H_
