#include "server/engine/rewrites/rewrite.h"

#include "server/engine/rewrites/grouped_lookups.h"

namespace colcast::engine {

std::vector<Rewrite> ExactRewrites() {
  return {{"grouped lookups", " lookups run as one op", true, GroupLookups}};
}

std::vector<Rewrite> FastRewrites(const CpuFlags&) { return {}; }

}  // namespace colcast::engine
