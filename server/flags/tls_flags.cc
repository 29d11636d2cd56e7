#include <absl/flags/flag.h>

#include <string>

#include "server/flags/parts.h"

ABSL_FLAG(std::string, ssl_config_file, "",
          "tensorflow.serving.SSLConfig in text form: key and certificate in PEM for TLS on every "
          "endpoint, and whether clients need certificates");

namespace colcast::flags {

Status ReadTlsFlags(std::optional<TlsConfig>* tls) {
  const std::string path = absl::GetFlag(FLAGS_ssl_config_file);
  if (path.empty()) return OkStatus();
  Status status = ReadTlsConfig(path, &tls->emplace());
  if (!status.ok()) status.message = "--ssl_config_file: " + status.message;
  return status;
}

}  // namespace colcast::flags
