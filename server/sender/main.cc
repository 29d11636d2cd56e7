// colcast_sender: reads a job from standard input, connects, prints "ready", waits until its input
// is closed, sends all calls, and prints the figures.

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/prctl.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/base/status.h"
#include "server/sender/sender.h"

namespace colcast::sender {
namespace {

constexpr char kUsage[] =
    "usage: colcast_sender --target=HOST:PORT --method=/package.Service/Method [--connections=8]\n"
    "    [--timeout=SECONDS] [--keep_every=N] [--records] [--tls_server_name=NAME\n"
    "    [--tls_root_certificates=PEM] [--tls_private_key=PEM --tls_certificate_chain=PEM]] < JOB\n"
    "server/sender/sender.h says what a job is; --records prints each call after the figures.\n";

struct ClientTls {
  std::string server_name;        // the name in the server's certificate: a host or an address
  std::string root_certificates;  // path of a PEM file; empty for the system's certificates
  // Paths of PEM files; both are empty to send no certificate.
  std::string private_key;
  std::string certificate_chain;
};

struct Flags {
  std::string target;
  std::string method;
  int connections = 8;
  double timeout = 10;
  size_t keep_every = 0;
  bool records = false;
  ClientTls tls;
};

template <typename T>
bool Parse(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value > 0;
}
bool Parse(std::string_view text, std::string* value) {
  *value = text;
  return !text.empty();
}
bool Parse(std::string_view text, bool* value) {
  *value = true;
  return text.empty();
}

bool ParseFlag(std::string_view argument, Flags* flags) {
  const auto is = [argument](std::string_view name, auto* value) {
    const size_t equals = argument.find('=');
    if (argument.substr(0, equals) != name) return false;
    return Parse(equals == argument.npos ? "" : argument.substr(equals + 1), value);
  };
  return is("--target", &flags->target) || is("--method", &flags->method) ||
         is("--connections", &flags->connections) || is("--timeout", &flags->timeout) ||
         is("--keep_every", &flags->keep_every) || is("--records", &flags->records) ||
         is("--tls_server_name", &flags->tls.server_name) ||
         is("--tls_root_certificates", &flags->tls.root_certificates) ||
         is("--tls_private_key", &flags->tls.private_key) ||
         is("--tls_certificate_chain", &flags->tls.certificate_chain);
}

int Fail(const std::string& message) {
  std::fprintf(stderr, "colcast_sender: %s\n", message.c_str());
  return 1;
}

Status Wrong(const std::string& path) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return InvalidArgument(path, ": ", reason == nullptr ? "not usable" : reason);
}

// Returns INVALID_ARGUMENT with the path of the file if one cannot be used.
Status MakeContext(const ClientTls& tls, std::shared_ptr<SSL_CTX>* context) {
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  context->reset(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX* const made = context->get();
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_alpn_protos(made, kHttp2, sizeof(kHttp2));
  X509_VERIFY_PARAM* const expected = SSL_CTX_get0_param(made);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, tls.server_name.c_str()) == 0) {
    X509_VERIFY_PARAM_set1_host(expected, tls.server_name.c_str(), 0);
  }
  ERR_clear_error();
  if (tls.root_certificates.empty()) {
    SSL_CTX_set_default_verify_paths(made);
  } else if (SSL_CTX_load_verify_file(made, tls.root_certificates.c_str()) != 1) {
    return Wrong(tls.root_certificates);
  }
  if (tls.private_key.empty()) return OkStatus();
  if (SSL_CTX_use_certificate_chain_file(made, tls.certificate_chain.c_str()) != 1) {
    return Wrong(tls.certificate_chain);
  }
  const char* const key = tls.private_key.c_str();
  return SSL_CTX_use_PrivateKey_file(made, key, SSL_FILETYPE_PEM) == 1 ? OkStatus()
                                                                       : Wrong(tls.private_key);
}

Status OptionsOf(const Flags& flags, SenderOptions* options, std::shared_ptr<SSL_CTX>* tls) {
  options->method = flags.method;
  options->connections = flags.connections;
  options->timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(flags.timeout));
  options->keep_every = flags.keep_every;
  Status status = http2::Target::Parse(flags.target, &options->target);
  if (!status.ok() || flags.tls.server_name.empty()) return status;
  status = MakeContext(flags.tls, tls);
  options->tls = tls->get();
  return status;
}

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    if (!ParseFlag(argv[i], &flags)) {
      return Fail(std::string("unknown argument \"") + argv[i] + "\"\n" + kUsage);
    }
  }
  if (flags.target.empty() || flags.method.empty()) return Fail(kUsage);
  SenderOptions options;
  std::shared_ptr<SSL_CTX> tls;
  Job job;
  Status status = OptionsOf(flags, &options, &tls);
  if (status.ok()) status = ReadJob(stdin, &job);
  if (!status.ok()) return Fail(status.message);
  Sender sender(std::move(options), job);
  status = sender.Connect();
  if (!status.ok()) return Fail(status.message);
  prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds, instead of the default 50 microseconds
  std::puts("ready");
  std::fflush(stdout);
  if (std::fgetc(stdin) != EOF) return Fail("the job has bytes after its last call");
  const Outcome outcome = sender.Run();
  std::puts(Figures(job, outcome).c_str());
  std::fflush(stdout);
  if (flags.records) {
    const std::string records = Records(outcome);
    std::fwrite(records.data(), 1, records.size(), stdout);
  }
  return std::fflush(stdout) == 0 ? 0 : Fail("the figures could not be written");
}

}  // namespace
}  // namespace colcast::sender

int main(int argc, char** argv) { return colcast::sender::Main(argc, argv); }
