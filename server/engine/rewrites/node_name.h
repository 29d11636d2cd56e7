// The name of the node in an input or tensor name.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_NODE_NAME_H_
#define COLCAST_SERVER_ENGINE_REWRITES_NODE_NAME_H_

#include <string>
#include <string_view>

#include "absl/strings/strip.h"

namespace colcast::engine {

// "node" for "^node", "node:1" and "node".
inline std::string NodeOf(std::string_view name) {
  absl::ConsumePrefix(&name, "^");
  return std::string(name.substr(0, name.find(':')));
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_NODE_NAME_H_
