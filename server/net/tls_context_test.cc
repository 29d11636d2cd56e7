#include "server/net/tls_context.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "server/net/socket.h"
#include "server/net/testing.h"

namespace colcast::net {
namespace {

using ::testing::HasSubstr;

std::string Quoted(const std::string& pem) {
  std::string quoted = "\"";
  for (const char c : pem) quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  return quoted + "\"\n";
}

// A server that requests clients' certificates, and clients that keep their sessions.
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
    const Status status = TlsContext::Create(config, Protocols::kHttp1, &context_);
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

  // Whether the server accepts the client. Sets `*session` to a session that can be resumed, and
  // `*is_resumed`.
  bool Connect(SSL_CTX* client_context, Owned<SSL_SESSION>* session, bool* is_resumed) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    Socket server(ends[0], context_->current().get());
    const Socket owner(ends[1], nullptr);
    const Owned<SSL> client = ClientOf(client_context, ends[1]);
    if (*session != nullptr) SSL_set_session(client.get(), session->get());
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
    *is_resumed = SSL_session_reused(client.get()) == 1;
    session->reset(SSL_get1_session(client.get()));
    SSL_set_shutdown(client.get(), SSL_SENT_SHUTDOWN);  // otherwise it is not resumed
    return true;
  }

  const Identity authority_ = MakeIdentity("authority", 3600, nullptr);
  std::shared_ptr<TlsContext> context_;
  Owned<SSL_SESSION> session_{nullptr, SSL_SESSION_free};
  bool is_resumed_ = false;
};

TEST_P(TlsContextTest, ASessionOfAnExpiredCertificateIsNotResumed) {
  Start();
  const Identity client = MakeIdentity("client", 2, &authority_);
  const Owned<SSL_CTX> context = ContextOf(client);
  ASSERT_TRUE(Connect(context.get(), &session_, &is_resumed_));
  EXPECT_FALSE(is_resumed_);
  ASSERT_TRUE(Connect(context.get(), &session_, &is_resumed_));
  EXPECT_TRUE(is_resumed_);
  while (X509_cmp_current_time(X509_get0_notAfter(client.certificate.get())) > 0) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(Connect(context.get(), &session_, &is_resumed_));
}

TEST_P(TlsContextTest, ASessionOfTheFileBeforeIsNotResumed) {
  Start();
  const Identity client = MakeIdentity("client", 3600, &authority_);
  const Owned<SSL_CTX> context = ContextOf(client);
  ASSERT_TRUE(Connect(context.get(), &session_, &is_resumed_));
  ASSERT_TRUE(Connect(context.get(), &session_, &is_resumed_));
  EXPECT_TRUE(is_resumed_);
  WriteFile(authority_);  // the same authority, written again
  context_->Reload();
  ASSERT_TRUE(Connect(context.get(), &session_, &is_resumed_));
  EXPECT_FALSE(is_resumed_);
}

TEST_P(TlsContextTest, AFileThatIsWrongLeavesThePairInUse) {
  Start();
  const Identity client = MakeIdentity("client", 3600, &authority_);
  const Owned<SSL_CTX> context = ContextOf(client);
  std::ofstream(Path()) << "server_key: 'none'";
  ::testing::internal::CaptureStderr();
  context_->Reload();
  context_->Reload();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("so the old ones stay in use"));
  EXPECT_EQ(log.find('\n'), log.size() - 1) << log;
  EXPECT_TRUE(Connect(context.get(), &session_, &is_resumed_));
}

INSTANTIATE_TEST_SUITE_P(Versions, TlsContextTest,
                         ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION));

}  // namespace
}  // namespace colcast::net
