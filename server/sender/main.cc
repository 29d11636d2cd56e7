// colcast_sender: reads a job from standard input, connects, prints "ready", waits until its input
// is closed, sends all calls, and writes the outcome. Numbers are 64-bit little-endian; a text
// follows its size.
//
// Job: the texts `target`, `method` and Tls's members; the numbers `connections`, `timeout` and
// `keep_every`; the number of requests, and each as a text; the number of calls, and each call's
// `due` and `request`. Outcome: `seconds`; the SentCalls; the number of kept answers, and each
// answer's call and text; `first_error`, without a size.

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "server/base/status.h"
#include "server/sender/sender.h"

namespace colcast::sender {
namespace {

// Without encryption, all members are empty.
struct Tls {
  std::string server_name;        // the name in the server's certificate: a host or an address
  std::string root_certificates;  // path of a PEM file; empty for the system's certificates
  // Paths of PEM files; both are empty to send no certificate.
  std::string private_key;
  std::string certificate_chain;
};

int Fail(const std::string& message) {
  std::fprintf(stderr, "colcast_sender: %s\n", message.c_str());
  return 1;
}

// Returns INVALID_ARGUMENT, naming the file, if a file cannot be used.
Status UseTls(const Tls& tls, SSL_CTX* context) {
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_alpn_protos(context, kHttp2, sizeof(kHttp2));
  X509_VERIFY_PARAM* const expected = SSL_CTX_get0_param(context);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, tls.server_name.c_str()) == 0) {
    X509_VERIFY_PARAM_set1_host(expected, tls.server_name.c_str(), 0);
  }
  if (tls.root_certificates.empty()) SSL_CTX_set_default_verify_paths(context);
  Status status;
  const auto use = [&status](const std::string& path, auto&& load) {
    ERR_clear_error();
    if (path.empty() || !status.ok() || load(path.c_str()) == 1) return;
    const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
    status = InvalidArgument(path, ": ", reason == nullptr ? "not usable" : reason);
  };
  use(tls.root_certificates,
      [&](const char* path) { return SSL_CTX_load_verify_file(context, path); });
  use(tls.certificate_chain,
      [&](const char* path) { return SSL_CTX_use_certificate_chain_file(context, path); });
  use(tls.private_key, [&](const char* path) {
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

// Returns false if the input ends too early or a number is too large.
bool Read(uint64_t* number) { return Read(number, 1) && *number <= INT32_MAX; }
bool Read(std::string* text) {
  uint64_t size = 0;
  if (!Read(&size)) return false;
  text->resize(size);
  return Read(text->data(), size);
}

bool ReadJob(Options* options, Tls* tls, Job* job) {
  uint64_t timeout = 0, count = 0;
  if (!(Read(&options->target) && Read(&options->method) && Read(&tls->server_name) &&
        Read(&tls->root_certificates) && Read(&tls->private_key) && Read(&tls->certificate_chain) &&
        Read(&options->connections) && Read(&timeout) && Read(&options->keep_every) &&
        Read(&count))) {
    return false;
  }
  options->timeout = std::chrono::milliseconds(timeout);
  job->requests.resize(count);
  for (std::string& request : job->requests) {
    if (!Read(&request)) return false;
  }
  if (!Read(&count)) return false;
  job->calls.resize(count);
  return options->connections > 0 && Read(job->calls.data(), count) &&
         std::all_of(job->calls.begin(), job->calls.end(),
                     [job](const Job::Call& call) { return call.request < job->requests.size(); });
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

int Main() {
  Options options;
  Tls tls;
  Job job;
  if (!ReadJob(&options, &tls, &job)) return Fail("the job is incomplete or wrong");
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free);
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(nullptr, freeaddrinfo);
  Status status = Resolve(options.target, &addresses);
  if (status.ok() && !tls.server_name.empty()) {
    options.tls = context.get();
    status = UseTls(tls, options.tls);
  }
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

int main() { return colcast::sender::Main(); }
