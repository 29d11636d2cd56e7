// Turns fuzz bytes into tf.Examples that are almost valid and similar to each other, as in a
// request.
#ifndef COLCAST_SERVER_ENGINE_FUZZ_EXAMPLE_BUILDER_H_
#define COLCAST_SERVER_ENGINE_FUZZ_EXAMPLE_BUILDER_H_

#include <string>
#include <vector>

#include "server/engine/fuzz/message_builder.h"

namespace colcast::fuzz {

// Returns serialized tf.Examples with some of the features `names`, and with unknown ones. Their
// lists may be packed, empty, repeated, merged, in any order and, rarely, damaged.
std::vector<std::string> BuildExamples(const std::vector<std::string>& names, Decisions* decisions);

}  // namespace colcast::fuzz

#endif  // COLCAST_SERVER_ENGINE_FUZZ_EXAMPLE_BUILDER_H_
