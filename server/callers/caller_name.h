// Who sends requests, by a name that a header or a certificate gives.
#ifndef COLCAST_SERVER_CALLERS_CALLER_NAME_H_
#define COLCAST_SERVER_CALLERS_CALLER_NAME_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace colcast::callers {

inline constexpr size_t kMaxNameBytes = 128;

// Names go into answers, logs, metrics and pages: printable ASCII, and not too much of it.
inline bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// What a client has sent, if that is a name; empty otherwise: it has none.
inline std::string NameOf(std::string_view sent) {
  return IsName(sent) ? std::string(sent) : std::string();
}

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_CALLER_NAME_H_
