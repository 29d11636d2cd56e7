#include <absl/flags/flag.h>
#include <absl/strings/match.h>

#include <algorithm>
#include <string>

#include "server/flags/parts.h"

ABSL_FLAG(std::string, caller_header, "",
          "the metadata key and HTTP header that names the caller; callers take turns, and have "
          "metrics of their own");
ABSL_FLAG(
    bool, caller_certificate, false,
    "the client's certificate names the caller: the first URI or, without one, DNS name among "
    "its alternative names, else its common name");

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

}  // namespace

Status ReadCallerFlags(bool certificates, std::optional<callers::NameSource>* names) {
  const callers::NameSource read{absl::GetFlag(FLAGS_caller_header),
                                 absl::GetFlag(FLAGS_caller_certificate)};
  Status status = CheckNames(read, certificates);
  if (status.ok() && (read.certificate || !read.header.empty())) *names = read;
  return status;
}

}  // namespace colcast::flags
