#include "server/flags/unknown_flags.h"

#include <absl/flags/commandlineflag.h>
#include <absl/flags/reflection.h>
#include <absl/strings/match.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace colcast::flags {
namespace {

// Levenshtein distance: characters to insert, remove or replace.
size_t EditDistance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, diagonal + 1, replaced});
    }
  }
  return row.back();
}

// What abseil's parser takes without a flag of that name.
constexpr std::string_view kParsersOwn[] = {"help",     "helpfull",  "helpshort", "helppackage",
                                            "helpon",   "helpmatch", "version",   "only_check_args",
                                            "flagfile", "undefok",   "fromenv",   "tryfromenv"};

// abseil's own are found by name but are none of this server's to propose.
bool IsOurs(const absl::CommandLineFlag& flag) {
  return absl::StrContains(flag.Filename(), "server/flags/");
}

// The closest flag, empty if none is closer than a third of the name.
std::string Closest(std::string_view name) {
  std::string closest;
  size_t least = name.size() / 3 + 1;
  for (const auto& [candidate, flag] : absl::GetAllFlags()) {
    if (!IsOurs(*flag)) continue;
    const size_t distance = EditDistance(name, {candidate.data(), candidate.size()});
    if (distance < least) {
      least = distance;
      closest = std::string(candidate);
    }
  }
  return closest;
}

bool IsFlag(std::string_view name) {
  if (std::find(std::begin(kParsersOwn), std::end(kParsersOwn), name) != std::end(kParsersOwn)) {
    return true;
  }
  if (absl::FindCommandLineFlag({name.data(), name.size()}) != nullptr) return true;
  absl::string_view positive(name.data(), name.size());
  if (!absl::ConsumePrefix(&positive, "no")) return false;
  const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(positive);
  return flag != nullptr && flag->IsOfType<bool>();
}

struct RemovedFlag {
  std::string_view name;
  std::string_view instead;
};

constexpr char kRateLimits[] = "Envoy limits callers' rates (deploy/envoy/render.py --caller-rate)";

// Flags of earlier versions, and what to do instead.
constexpr RemovedFlag kRemoved[] = {
    {"quota_config_file", kRateLimits},
    {"quota_config_file_poll_wait_seconds", kRateLimits},
};

// The flag's name in an argument; empty where there is none.
std::string_view NameIn(std::string_view argument) {
  if (argument.size() < 2 || argument[0] != '-') return {};
  argument.remove_prefix(argument[1] == '-' ? 2 : 1);
  return argument.substr(0, argument.find('='));
}

// --NAME VALUE: the value is an argument of its own, and may begin with a dash.
bool TakesNextArgument(std::string_view argument, std::string_view name) {
  if (absl::StrContains(absl::string_view(argument.data(), argument.size()), "=")) return false;
  const absl::CommandLineFlag* flag = absl::FindCommandLineFlag({name.data(), name.size()});
  return flag != nullptr && !flag->IsOfType<bool>();
}

}  // namespace

Status CheckFlagNames(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") break;
    const std::string_view name = NameIn(argument);
    if (name.empty()) continue;
    if (TakesNextArgument(argument, name)) ++i;
    if (IsFlag(name)) continue;
    for (const RemovedFlag& removed : kRemoved) {
      if (removed.name == name) return InvalidArgument("--", name, " is gone: ", removed.instead);
    }
    const std::string closest = Closest(name);
    return InvalidArgument("unknown flag --", name,
                           closest.empty() ? "; --help lists all" : "; did you mean --", closest,
                           closest.empty() ? "" : "?");
  }
  return OkStatus();
}

}  // namespace colcast::flags
