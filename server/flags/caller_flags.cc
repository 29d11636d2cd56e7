#include <absl/flags/flag.h>
#include <absl/strings/match.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(std::string, caller_header, "",
          "the metadata key and HTTP header that names the caller; callers take turns, and have "
          "quotas and metrics of their own");
ABSL_FLAG(
    bool, caller_certificate, false,
    "the client's certificate names the caller: the first URI or, without one, DNS name among "
    "its alternative names, else its common name");
ABSL_FLAG(std::string, quota_config_file, "",
          "what callers may ask of models: a colcast.QuotaConfig in protobuf's text format");
ABSL_FLAG(double, quota_config_file_poll_wait_seconds, 0,
          "seconds between looks at --quota_config_file; 0: it is read once");

namespace colcast::flags {
namespace {

bool IsHeaderName(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

Status CheckHeader(const std::string& name) {
  constexpr const char* kTaken[] = {"te", "user-agent", "accept-encoding", "content-type"};
  const bool is_taken = absl::StartsWith(name, "grpc-") ||
                        std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken);
  if (IsHeaderName(name) && !is_taken && !absl::EndsWith(name, "-bin")) return OkStatus();
  return InvalidArgument("--caller_header: \"", name,
                         "\", expected a name in lower case, such as x-colcast-caller, that is not "
                         "gRPC's and does not end in -bin");
}

Status CheckNames(const callers::NameSource& names, bool certificates) {
  if (names.certificate && !names.header.empty()) {
    return InvalidArgument("--caller_header and --caller_certificate: expected one of them");
  }
  if (names.certificate && !certificates) {
    return InvalidArgument(
        "--caller_certificate needs an --ssl_config_file with client_verify: true");
  }
  return CheckHeader(names.header);
}

// Also that the quotas' callers can be told apart.
Status CheckFile(const std::string& path, bool has_names) {
  std::vector<callers::Quota> quotas;
  Status status = callers::ReadQuotaConfig(path, &quotas);
  const auto named = std::find_if(quotas.begin(), quotas.end(), [](const callers::Quota& quota) {
    return !quota.caller.empty();
  });
  if (status.ok() && !has_names && named != quotas.end()) {
    status = InvalidArgument(path, ": caller \"", named->caller,
                             "\" needs --caller_header or --caller_certificate");
  }
  if (!status.ok()) status.message = "--quota_config_file: " + status.message;
  return status;
}

}  // namespace

Status ReadCallerFlags(bool certificates, std::optional<callers::Callers::Options>* options) {
  callers::Callers::Options read;
  read.names = {absl::GetFlag(FLAGS_caller_header), absl::GetFlag(FLAGS_caller_certificate)};
  read.quota_file = absl::GetFlag(FLAGS_quota_config_file);
  const double wait = absl::GetFlag(FLAGS_quota_config_file_poll_wait_seconds);
  read.quota_file_poll_wait = std::chrono::milliseconds(static_cast<int64_t>(wait * 1000));
  Status status = CheckRanges({{FLAGS_quota_config_file_poll_wait_seconds, 0}});
  if (status.ok()) status = CheckNames(read.names, certificates);
  const bool has_names = read.names.certificate || !read.names.header.empty();
  if (status.ok() && !read.quota_file.empty()) status = CheckFile(read.quota_file, has_names);
  if (status.ok() && (has_names || !read.quota_file.empty())) *options = std::move(read);
  return status;
}

}  // namespace colcast::flags
