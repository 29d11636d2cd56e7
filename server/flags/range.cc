#include "server/flags/range.h"

#include <cmath>

namespace colcast::flags {

Status CheckRanges(std::initializer_list<Range> ranges) {
  for (const Range& range : ranges) {
    if (!(range.value >= range.least)) {
      return InvalidArgument("--", range.name, "=", range.text, ": expected at least ",
                             range.least);
    }
    if (range.value > range.most) {
      return InvalidArgument("--", range.name, "=", range.text, ": expected at most ", range.most);
    }
    if (std::isinf(range.value)) {
      return InvalidArgument("--", range.name, "=", range.text, ": expected a finite number");
    }
  }
  return OkStatus();
}

}  // namespace colcast::flags
