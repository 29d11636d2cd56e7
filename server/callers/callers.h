// Who sends a request. Callers that have a name take turns in the queue.
#ifndef COLCAST_SERVER_CALLERS_CALLERS_H_
#define COLCAST_SERVER_CALLERS_CALLERS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace colcast::callers {

// Where the name of a request's caller comes from.
struct NameSource {
  std::string header;        // a header's name, in lower case; empty if no header is used
  bool certificate = false;  // whether the client's certificate names the caller
};

// The number for Job::client(): the same for all requests of a caller; 0 without a name. `sent` is
// the name that the client claims; one that is not short printable ASCII counts as none.
uint64_t ClientOf(std::string_view sent);

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_CALLERS_H_
