#include "server/callers/callers.h"

#include <algorithm>
#include <functional>

namespace colcast::callers {

uint64_t ClientOf(std::string_view sent) {
  constexpr size_t kMaxNameBytes = 128;
  const bool is_name =
      !sent.empty() && sent.size() <= kMaxNameBytes &&
      std::all_of(sent.begin(), sent.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!is_name) return 0;
  const std::string key = "caller:" + std::string(sent);
  return std::max<uint64_t>(1, std::hash<std::string>()(key));
}

}  // namespace colcast::callers
