// gRPC's headers: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
#ifndef COLCAST_SERVER_HTTP2_GRPC_HEADERS_H_
#define COLCAST_SERVER_HTTP2_GRPC_HEADERS_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace colcast::http2 {

// Parses a grpc-timeout: at most eight digits and a unit, such as "100m" for 100 ms. Returns
// nullopt for any other text.
std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text);

// Formats a timeout, rounded up; "0m" for none.
std::string FormatTimeout(std::chrono::nanoseconds timeout);

// Whether a content-type is gRPC's: "application/grpc", perhaps with "+proto" or ";...", but not
// "application/grpc-web".
bool IsGrpc(std::string_view content_type);

// Encodes a grpc-message: replaces '%' and bytes other than printable ASCII by escapes like "%E2".
std::string PercentEncode(std::string_view text);

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_GRPC_HEADERS_H_
