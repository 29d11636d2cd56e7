#include "server/tracing/otlp.h"

#include <cstring>
#include <string_view>

#include "server/wire/varint.h"

namespace colcast::tracing {
namespace {

void AppendNumber(int field, uint64_t value, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3, out);
  AppendVarint(value, out);
}

void AppendBytes(int field, std::string_view bytes, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

void AppendFixed64(int field, int64_t value, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | 1, out);
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));  // x86-64 is little-endian, like the format
  out->append(bytes, sizeof(value));
}

std::string ToKeyValue(const Attribute& attribute) {
  std::string value;
  if (const auto* text = std::get_if<std::string>(&attribute.second)) {
    AppendBytes(1, *text, &value);
  } else if (const auto* flag = std::get_if<bool>(&attribute.second)) {
    AppendNumber(2, *flag ? 1 : 0, &value);
  } else {
    AppendNumber(3, static_cast<uint64_t>(std::get<int64_t>(attribute.second)), &value);
  }
  std::string pair;
  AppendBytes(1, attribute.first, &pair);
  AppendBytes(2, value, &pair);
  return pair;
}

std::string ToProto(const Span& span) {
  constexpr int kStatusError = 2;
  std::string proto;
  AppendBytes(1, span.trace_id, &proto);
  AppendBytes(2, span.id, &proto);
  if (!span.parent_id.empty()) AppendBytes(4, span.parent_id, &proto);
  AppendBytes(5, span.name, &proto);
  AppendNumber(6, static_cast<uint64_t>(span.kind), &proto);
  AppendFixed64(7, span.start, &proto);
  AppendFixed64(8, span.end, &proto);
  for (const Attribute& attribute : span.attributes) AppendBytes(9, ToKeyValue(attribute), &proto);
  if (span.failed) {
    std::string status;
    AppendNumber(3, kStatusError, &status);
    AppendBytes(15, status, &proto);
  }
  return proto;
}

}  // namespace

std::string WriteExportRequest(const std::string& service_name, const std::vector<Span>& spans) {
  std::string resource;
  AppendBytes(1, ToKeyValue({"service.name", service_name}), &resource);
  std::string scope;
  AppendBytes(1, "colcast.server", &scope);
  std::string scope_spans;
  AppendBytes(1, scope, &scope_spans);
  for (const Span& span : spans) AppendBytes(2, ToProto(span), &scope_spans);
  std::string resource_spans;
  AppendBytes(1, resource, &resource_spans);
  AppendBytes(2, scope_spans, &resource_spans);
  std::string request;
  AppendBytes(1, resource_spans, &request);
  return request;
}

}  // namespace colcast::tracing
