#include "server/request_log/logging_config.h"

#include <algorithm>
#include <filesystem>

#include "server/base/text.h"

namespace colcast::request_log {
namespace {

using std::filesystem::path;

bool LiesBelow(const path& directory, const path& file) {
  const path above = (directory / "").lexically_normal().parent_path();
  const path normal = file.lexically_normal();
  const auto [left, rest] = std::mismatch(above.begin(), above.end(), normal.begin(), normal.end());
  return left == above.end() && rest != normal.end();
}

Status WrongPrefix(const std::string& prefix, const std::string& expected) {
  return InvalidArgument("logging_config: filename_prefix is ", JsonQuoted(prefix), ", expected ",
                         expected);
}

Status PlacePrefix(const std::string& prefix, const LogPlaces& places, std::string* placed) {
  const path wanted(prefix);
  const bool has_control_characters = std::any_of(
      prefix.begin(), prefix.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (has_control_characters || std::find(wanted.begin(), wanted.end(), "..") != wanted.end()) {
    return WrongPrefix(prefix, "a path without control characters and \"..\"");
  }
  if (places.directory.empty()) {
    if (!places.anywhere) {
      return FailedPrecondition(
          "logging_config: a reload over the network may only log below --request_log_directory, "
          "and this server was started without it");
    }
    *placed = prefix;
    return wanted.is_absolute()
               ? OkStatus()
               : WrongPrefix(prefix, "an absolute path that file names begin with");
  }
  if (prefix.empty() || (wanted.is_absolute() && !LiesBelow(places.directory, wanted))) {
    return WrongPrefix(prefix, "a path below --request_log_directory, " + places.directory);
  }
  *placed = path(places.directory) / wanted;
  return OkStatus();
}

}  // namespace

Status CheckLoggingConfig(const tensorflow::serving::LoggingConfig& proto, const LogPlaces& places,
                          LoggingConfig* config) {
  const double rate = proto.sampling_config().sampling_rate();
  if (!(rate >= 0 && rate <= 1)) {
    return InvalidArgument("logging_config: sampling_rate is ", rate,
                           ", expected a number from 0 to 1");
  }
  *config = {rate, {}};
  if (rate == 0) return OkStatus();
  const std::string& type = proto.log_collector_config().type();
  if (!type.empty() && type != "file") {
    return InvalidArgument("logging_config: there is no log collector of type \"", type,
                           "\", only \"file\"");
  }
  return PlacePrefix(proto.log_collector_config().filename_prefix(), places,
                     &config->filename_prefix);
}

}  // namespace colcast::request_log
