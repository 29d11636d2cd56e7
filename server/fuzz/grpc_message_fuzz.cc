// libFuzzer target: reads gRPC messages and headers. The result must not depend on how the bytes
// are split, and messages must not inflate beyond the limit.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/text.h"
#include "server/http2/grpc.h"
#include "server/wire/fuzz_testing.h"

namespace colcast::http2 {
namespace {

using fuzz::Expect;

constexpr size_t kMaxBytes = 1 << 20;
constexpr size_t kMaxInflatedBytes = 64 << 10;

// Returns the messages and, if reading ended with an error, its text.
std::vector<std::string> Read(std::string_view bytes, const std::string& encoding, size_t step) {
  const auto owner = std::make_shared<std::string>(bytes);
  MessageReader reader(kMaxBytes);
  reader.set_encoding(encoding);
  std::vector<std::string> messages;
  for (size_t at = 0; at < owner->size();) {
    size_t size = std::min(step, owner->size() - at);
    const auto* const data = reinterpret_cast<const uint8_t*>(owner->data());
    if (Status status = reader.Read(owner, data + at, &size); !status.ok()) {
      messages.push_back(status.message);
      return messages;
    }
    at += size;
    if (!reader.has_message()) continue;
    Message message = reader.Take();
    messages.push_back(message.bytes().ToString());
    if (Inflate(kMaxInflatedBytes, &message).ok() && encoding == "gzip") {
      Expect(message.size() <= std::max(kMaxInflatedBytes, messages.back().size()),
             "a message inflates beyond the limit");
    }
  }
  return messages;
}

void Check(std::string_view input) {
  if (input.empty()) return;
  const auto first = static_cast<uint8_t>(input[0]);
  input.remove_prefix(1);
  const std::string encoding = (first & 1) != 0 ? "gzip" : "deflate";
  Expect(Read(input, encoding, input.size()) == Read(input, encoding, 1 + first / 2),
         "messages depend on how their bytes are split");
  Expect(PercentDecode(PercentEncode(input)) == input, "encoding and decoding changes a text");
  Expect(PercentDecode(input).size() <= input.size(), "decoded text is longer");
  const auto timeout = ParseTimeout(input);
  Expect(!timeout || timeout->count() >= 0, "a timeout is negative");
}

}  // namespace
}  // namespace colcast::http2

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  colcast::http2::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
