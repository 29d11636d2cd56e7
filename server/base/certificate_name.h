// The name in the certificate of the other side of a TLS connection.
#ifndef COLCAST_SERVER_BASE_CERTIFICATE_NAME_H_
#define COLCAST_SERVER_BASE_CERTIFICATE_NAME_H_

#include <openssl/types.h>

#include <string>

namespace colcast {

// The name in the client's certificate, after the handshake: the first URI among its alternative
// names, else the first DNS name, else the subject's common name. Empty if there is none, or no
// certificate.
std::string CertificateName(const SSL* tls);

// The same for a given certificate.
std::string CertificateName(const X509* certificate);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_CERTIFICATE_NAME_H_
