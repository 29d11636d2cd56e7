#include "server/net/tls_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "server/net/socket.h"
#include "server/net/testing.h"

namespace colcast::net {
namespace {

std::string Quoted(const std::string& pem) {
  std::string quoted = "\"";
  for (const char c : pem) quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  return quoted + "\"\n";
}

// A server that requests clients' certificates, and clients that keep their sessions. Renewed files
// are tested in tests/server/test_ports.py.
class TlsContextTest : public ::testing::TestWithParam<int> {
 protected:
  static void WriteFile(const Identity& server) {
    std::ofstream(Path()) << "server_key: " << Quoted(Pem(server, true))
                          << "server_cert: " << Quoted(Pem(server, false))
                          << "custom_ca: " << Quoted(Pem(server, false)) << "client_verify: true\n";
  }
  static std::string Path() { return ::testing::TempDir() + "tls_context_test.pbtxt"; }

  void Start() {
    WriteFile(authority_);
    TlsConfig config;
    ASSERT_TRUE(ReadTlsConfig(Path(), &config).ok());
    const Status status = TlsContext::Create(config, &context_);
    ASSERT_TRUE(status.ok()) << status.message;
  }

  Owned<SSL_CTX> ContextOf(const Identity& client) const {
    Owned<SSL_CTX> context = ClientContext();
    SSL_CTX_set_min_proto_version(context.get(), GetParam());
    SSL_CTX_set_max_proto_version(context.get(), GetParam());
    SSL_CTX_use_certificate(context.get(), client.certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), client.key.get());
    return context;
  }

  // Whether the server accepts the client; sets session_ and is_resumed_.
  bool Connect(const Owned<SSL_CTX>& client_context) {
    const auto ends = ConnectedSockets();
    Socket server(ends[0], context_->current(Protocol::kHttp1).get());
    const Socket owner(ends[1], nullptr);
    const Owned<SSL> client = ClientOf(client_context.get(), ends[1]);
    if (session_ != nullptr) SSL_set_session(client.get(), session_.get());
    Socket::Result result = Socket::Result::kAgain;
    while (result == Socket::Result::kAgain) {
      SSL_do_handshake(client.get());
      result = server.Handshake();
    }
    if (result != Socket::Result::kDone) return false;
    size_t size = 2;
    EXPECT_EQ(server.Write(reinterpret_cast<const uint8_t*>("ok"), &size), Socket::Result::kDone);
    std::array<char, 2> read{};
    if (SSL_read(client.get(), read.data(), 2) != 2) return false;
    is_resumed_ = SSL_session_reused(client.get()) == 1;
    session_.reset(SSL_get1_session(client.get()));
    SSL_set_shutdown(client.get(), SSL_SENT_SHUTDOWN);  // otherwise the session is not resumed
    return true;
  }

  const Identity authority_ = MakeIdentity("authority", 3600, nullptr);
  std::shared_ptr<TlsContext> context_;
  Owned<SSL_SESSION> session_{nullptr, SSL_SESSION_free};  // the session to resume
  bool is_resumed_ = false;
};

TEST_P(TlsContextTest, ASessionOfAnExpiredCertificateIsNotResumed) {
  Start();
  const Identity client = MakeIdentity("client", 2, &authority_);
  const Owned<SSL_CTX> context = ContextOf(client);
  ASSERT_TRUE(Connect(context));
  EXPECT_FALSE(is_resumed_);
  ASSERT_TRUE(Connect(context));
  EXPECT_TRUE(is_resumed_);
  while (X509_cmp_current_time(X509_get0_notAfter(client.certificate.get())) > 0) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(Connect(context));
}

TEST_P(TlsContextTest, ACertificateIsUsedOnceItIsValid) {
  Start();
  const Identity next = MakeIdentity("next", 3600, nullptr, 2);
  WriteFile(next);
  const auto* const before = context_->current(Protocol::kHttp1).get();
  context_->Reload();
  EXPECT_EQ(context_->current(Protocol::kHttp1).get(), before);
  while (context_->current(Protocol::kHttp1).get() == before) {
    std::this_thread::yield();
    context_->Reload();
  }
  const Owned<SSL_CTX> context = ContextOf(MakeIdentity("client", 3600, &next));
  EXPECT_TRUE(Connect(context));
}

INSTANTIATE_TEST_SUITE_P(Versions, TlsContextTest,
                         ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION));

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Valid keys and certificates are tested over connections, in tests/server/test_ports.py.
TEST(TlsConfigTest, ErrorsNameTheFileAndTheField) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"", "server_key is missing"},
      {"server_key: 'k'", "server_cert is missing"},
      {"server_key: 'k' server_cert: 'c' client_verify: true", "client_verify needs custom_ca"},
      {"server_key: 'k' server_cert: 'c'", "server_key is not an unencrypted PEM private key"},
      {"server_keys: 'k'", "server_keys"},
  };
  const std::string path = testing::TempDir() + "tls_config_test.pbtxt";
  for (const auto& one : kCases) {
    std::ofstream(path) << one.text;
    TlsConfig config;
    const Status status = ReadTlsConfig(path, &config);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << one.text;
    EXPECT_THAT(status.message, AllOf(StartsWith(path), HasSubstr(one.message))) << one.text;
  }
}

}  // namespace
}  // namespace colcast::net
