// The bytes themselves; tests/server/test_tracing.py reads them with OpenTelemetry's classes.
#include "server/tracing/otlp.h"

#include <gtest/gtest.h>

namespace colcast::tracing {
namespace {

TEST(OtlpTest, WritesIdsNameTimesAndAttributes) {
  Span span;
  span.trace_id = std::string(16, 't');
  span.id = std::string(8, 'i');
  span.name = "n";
  span.start = 1;
  span.end = 0x0102030405060708;
  span.attributes = {{"k", int64_t{300}}, {"b", true}};
  span.failed = true;
  const std::string bytes = WriteExportRequest("s", {span});
  using namespace std::string_literals;
  const std::string expected =
      "\x0a\x10tttttttttttttttt\x12\x08iiiiiiii\x2a\x01n\x30\x01"
      "\x39\x01\0\0\0\0\0\0\0\x41\x08\x07\x06\x05\x04\x03\x02\x01"
      "\x4a\x08\x0a\x01k\x12\x03\x18\xac\x02\x4a\x07\x0a\x01"s
      "b\x12\x02\x10\x01\x7a\x02\x18\x02"s;
  ASSERT_GE(bytes.size(), expected.size());
  EXPECT_EQ(bytes.substr(bytes.size() - expected.size()), expected);
}

}  // namespace
}  // namespace colcast::tracing
