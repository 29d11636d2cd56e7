#include "server/base/tls_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <fstream>
#include <memory>
#include <string>

namespace colcast {
namespace {

// The name of a certificate with this subject and these alternative names; empty: none.
std::string NameOf(const std::string& common_name, const std::string& others) {
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  if (!common_name.empty()) {
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(common_name.data()),
                               static_cast<int>(common_name.size()), -1, 0);
  }
  if (!others.empty()) {
    X509_EXTENSION* const extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, others.c_str());
    EXPECT_NE(extension, nullptr) << others;
    X509_add_ext(certificate.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  return CertificateName(certificate.get());
}

TEST(CertificateNameTest, PrefersWhatSaysMost) {
  EXPECT_EQ(NameOf("batch", ""), "batch");
  EXPECT_EQ(NameOf("batch", "IP:127.0.0.1,email:a@b.example"), "batch");
  EXPECT_EQ(NameOf("batch", "DNS:batch.example,DNS:other.example"), "batch.example");
  EXPECT_EQ(NameOf("batch", "DNS:batch.example,URI:spiffe://example/batch"),
            "spiffe://example/batch");
  EXPECT_EQ(NameOf("", "IP:127.0.0.1"), "");
  EXPECT_EQ(NameOf("", ""), "");
}

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Valid keys and certificates are tested over connections, in tests/server/test_tls.py.
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
}  // namespace colcast
