// Whose certificate the other side of a TLS connection has shown.
#ifndef COLCAST_SERVER_BASE_CERTIFICATE_NAME_H_
#define COLCAST_SERVER_BASE_CERTIFICATE_NAME_H_

#include <openssl/types.h>

#include <string>

namespace colcast {

// Of a client's certificate, after the handshake: the first URI among its alternative names, else
// the first DNS name, else the subject's common name. Empty if there is none of these, or no
// certificate.
std::string CertificateName(const SSL* tls);

// The same of a certificate.
std::string CertificateName(const X509* certificate);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_CERTIFICATE_NAME_H_
