// Where requests say whose they are.
#ifndef COLCAST_SERVER_CALLERS_NAME_SOURCE_H_
#define COLCAST_SERVER_CALLERS_NAME_SOURCE_H_

#include <string>

namespace colcast::callers {

// Where a caller's name is. Without either callers have none.
struct NameSource {
  std::string header;        // in lower case; empty: in none
  bool certificate = false;  // the client's
};

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_NAME_SOURCE_H_
