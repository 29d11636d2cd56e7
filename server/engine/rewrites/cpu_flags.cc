#include "server/engine/rewrites/cpu_flags.h"

#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace colcast::engine {

CpuFlags::CpuFlags(std::string_view cpuinfo) {
  for (const std::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    const std::pair<std::string_view, std::string_view> entry =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const std::string_view key = absl::StripAsciiWhitespace(entry.first);
    const std::string_view value = absl::StripAsciiWhitespace(entry.second);
    if (key == "model name" && model_.empty()) model_ = std::string(value);
    if (key != "flags") continue;
    const std::set<std::string> flags = absl::StrSplit(value, ' ', absl::SkipEmpty());
    flags_ = flags;
    return;
  }
}

CpuFlags CpuFlags::OfThisMachine() {
  std::ifstream in("/proc/cpuinfo");
  return CpuFlags(std::string(std::istreambuf_iterator<char>(in), {}));
}

}  // namespace colcast::engine
