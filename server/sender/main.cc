// colcast_sender: reads a job from standard input, connects, prints "ready", waits until its input
// is closed, sends all calls, and writes the outcome. All numbers are 64-bit little-endian.
//
// Job: the number of requests; the size and the bytes of each; the number of calls; `due` and
// `request` of each. Outcome: `seconds`; the SentCalls; the number of kept answers; the call, the
// size and the bytes of each; to its end, `first_error`.

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/sender/sender.h"

namespace colcast::sender {
namespace {

constexpr char kUsage[] =
    "usage: colcast_sender --target=HOST:PORT --method=/package.Service/Method [--connections=8]\n"
    "    [--timeout=SECONDS] [--keep_every=N] [--tls_server_name=NAME\n"
    "    [--tls_root_certificates=PEM] [--tls_private_key=PEM --tls_certificate_chain=PEM]] < JOB";

using Flags = std::map<std::string, std::string, std::less<>>;

bool ParseFlags(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = std::min(argument.find('='), argument.size());
    const auto flag = flags->find(argument.substr(0, equals));
    if (flag == flags->end() || equals == argument.size()) return false;
    flag->second = argument.substr(equals + 1);
  }
  return true;
}

int Fail(const std::string& message) {
  std::fprintf(stderr, "colcast_sender: %s\n", message.c_str());
  return 1;
}

// Returns INVALID_ARGUMENT with the path of the file if one cannot be used. Without the flag
// --tls_root_certificates, the system's certificates are used.
Status UseTls(const Flags& flags, SSL_CTX* context) {
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_alpn_protos(context, kHttp2, sizeof(kHttp2));
  X509_VERIFY_PARAM* const expected = SSL_CTX_get0_param(context);
  const std::string& name = flags.at("--tls_server_name");
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) == 0) {
    X509_VERIFY_PARAM_set1_host(expected, name.c_str(), 0);
  }
  if (flags.at("--tls_root_certificates").empty()) SSL_CTX_set_default_verify_paths(context);
  Status status;
  const auto use = [&](const char* flag, auto&& load) {
    const std::string& path = flags.at(flag);
    ERR_clear_error();
    if (path.empty() || !status.ok() || load(path.c_str()) == 1) return;
    const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
    status = InvalidArgument(path, ": ", reason == nullptr ? "not usable" : reason);
  };
  use("--tls_root_certificates",
      [&](const char* path) { return SSL_CTX_load_verify_file(context, path); });
  use("--tls_certificate_chain",
      [&](const char* path) { return SSL_CTX_use_certificate_chain_file(context, path); });
  use("--tls_private_key", [&](const char* path) {
    return SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM);
  });
  return status;
}

// HOST may be an IPv6 address in brackets.
Status Resolve(const std::string& target, std::unique_ptr<addrinfo, void (*)(addrinfo*)>* found) {
  const size_t colon = std::min(target.rfind(':'), target.size());
  std::string host = target.substr(0, colon);
  if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const char* const port = target.c_str() + std::min(colon + 1, target.size());
  const int error = getaddrinfo(host.c_str(), port, &hints, &first);
  if (error != 0) return Unavailable("cannot find ", target, ": ", gai_strerror(error));
  found->reset(first);
  return OkStatus();
}

template <typename T>
bool Read(T* values, size_t count) {
  return std::fread(values, sizeof(T), count, stdin) == count;
}

Status ReadJob(Job* job) {
  constexpr uint64_t kMost = INT32_MAX;  // of everything; protobuf's own limit of a message
  uint64_t number = 0;
  const auto read = [&number] { return Read(&number, 1) && number <= kMost; };
  const Status wrong = InvalidArgument("the job is incomplete or wrong");
  if (!read()) return wrong;
  job->requests.resize(number);
  for (std::string& request : job->requests) {
    if (!read()) return wrong;
    request.resize(number);
    if (!Read(request.data(), number)) return wrong;
  }
  if (!read()) return wrong;
  job->calls.resize(number);
  const auto is_right = [job](const Job::Call& call) {
    return call.request < job->requests.size();
  };
  const bool is_read = Read(job->calls.data(), number);
  return is_read && std::all_of(job->calls.begin(), job->calls.end(), is_right) ? OkStatus()
                                                                                : wrong;
}

template <typename T>
void Write(const T* values, size_t count) {
  std::fwrite(values, sizeof(T), count, stdout);
}

void WriteOutcome(const Outcome& outcome) {
  Write(&outcome.seconds, 1);
  Write(outcome.calls.data(), outcome.calls.size());
  const uint64_t count = outcome.answers.size();
  Write(&count, 1);
  for (const auto& [number, answer] : outcome.answers) {
    const uint64_t head[] = {number, answer.size()};
    Write(head, 2);
    Write(answer.data(), answer.size());
  }
  Write(outcome.first_error.data(), outcome.first_error.size());
}

int Main(int argc, char** argv) {
  Flags flags = {{"--target", ""},
                 {"--method", ""},
                 {"--connections", "8"},
                 {"--timeout", "10"},
                 {"--keep_every", "0"},
                 {"--tls_server_name", ""},
                 {"--tls_root_certificates", ""},
                 {"--tls_private_key", ""},
                 {"--tls_certificate_chain", ""}};
  if (!ParseFlags(argc, argv, &flags)) return Fail(kUsage);
  Options options;
  options.target = flags["--target"];
  options.method = flags["--method"];
  options.connections = std::strtoul(flags["--connections"].c_str(), nullptr, 10);
  options.keep_every = std::strtoul(flags["--keep_every"].c_str(), nullptr, 10);
  options.timeout =
      std::chrono::milliseconds(std::lround(1000 * std::atof(flags["--timeout"].c_str())));
  if (options.connections == 0 || options.timeout.count() <= 0) return Fail(kUsage);
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> tls(SSL_CTX_new(TLS_client_method()),
                                                         SSL_CTX_free);
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(nullptr, freeaddrinfo);
  Job job;
  Status status = Resolve(options.target, &addresses);
  if (status.ok() && !flags["--tls_server_name"].empty()) {
    options.tls = tls.get();
    status = UseTls(flags, options.tls);
  }
  if (status.ok()) status = ReadJob(&job);
  if (!status.ok()) return Fail(status.message);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    options.addresses.push_back(each);
  }
  Sender sender(options, job);
  sender.Connect();
  prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds, instead of the default 50 microseconds
  std::puts("ready");
  std::fflush(stdout);
  if (std::fgetc(stdin) != EOF) return Fail("the job has bytes after its last call");
  WriteOutcome(sender.Run());
  return std::fflush(stdout) == 0 ? 0 : Fail("the outcome could not be written");
}

}  // namespace
}  // namespace colcast::sender

int main(int argc, char** argv) { return colcast::sender::Main(argc, argv); }
