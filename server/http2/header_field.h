// Headers in nghttp2's form.
#ifndef COLCAST_SERVER_HTTP2_HEADER_FIELD_H_
#define COLCAST_SERVER_HTTP2_HEADER_FIELD_H_

#include <nghttp2/nghttp2.h>

#include <string_view>

namespace colcast::http2 {

// Both strings are copied when the headers are submitted.
inline nghttp2_nv Field(std::string_view name, std::string_view value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

// For a name that is a string literal.
template <size_t kName>
nghttp2_nv Named(const char (&name)[kName], std::string_view value) {
  nghttp2_nv field = Field({name, kName - 1}, value);
  field.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
  return field;
}

// For a name and a value that are string literals.
template <size_t kName, size_t kValue>
nghttp2_nv Literal(const char (&name)[kName], const char (&value)[kValue]) {
  nghttp2_nv field = Field({name, kName - 1}, {value, kValue - 1});
  field.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
  return field;
}

inline std::string_view View(nghttp2_rcbuf* buffer) {
  const nghttp2_vec bytes = nghttp2_rcbuf_get_buf(buffer);
  return {reinterpret_cast<const char*>(bytes.base), bytes.len};
}

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_HEADER_FIELD_H_
