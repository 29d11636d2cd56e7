#include "server/base/certificate_name.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

namespace colcast {
namespace {

template <typename T, void (*kFree)(T*)>
struct Free {
  void operator()(T* object) const { kFree(object); }
};
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES, GENERAL_NAMES_free>>;

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

// The first name of that kind, such as GEN_URI; empty if there is none.
std::string FirstOf(const GENERAL_NAMES* names, int kind) {
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type == kind) return TextOf(name->d.ia5);
  }
  return "";
}

std::string CommonName(const X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "";
  return TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

}  // namespace

std::string CertificateName(const X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names != nullptr) {
    for (const int kind : {GEN_URI, GEN_DNS}) {
      std::string name = FirstOf(names.get(), kind);
      if (!name.empty()) return name;
    }
  }
  return CommonName(certificate);
}

std::string CertificateName(const SSL* tls) {
  const Certificate certificate(SSL_get1_peer_certificate(tls));
  return certificate == nullptr ? "" : CertificateName(certificate.get());
}

}  // namespace colcast
