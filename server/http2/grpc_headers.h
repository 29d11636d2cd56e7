// gRPC's headers: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
#ifndef COLCAST_SERVER_HTTP2_GRPC_HEADERS_H_
#define COLCAST_SERVER_HTTP2_GRPC_HEADERS_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace colcast::http2 {

// A grpc-timeout: at most eight digits and a unit, "100m" for 100 ms. None if it is no such text.
std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text);

// The same of a time, which is rounded up; "0m" for none.
std::string FormatTimeout(std::chrono::nanoseconds timeout);

// Whether a content-type is one of gRPC's: "application/grpc", perhaps with "+proto" or ";...". Not
// "application/grpc-web".
bool IsGrpc(std::string_view content_type);

// A grpc-message: all bytes but printable ASCII, and '%', as "%E2".
std::string PercentEncode(std::string_view text);

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_GRPC_HEADERS_H_
