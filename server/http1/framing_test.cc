#include "server/http1/framing.h"

#include <gtest/gtest.h>

namespace colcast::http {
namespace {

TEST(CheckTransferEncoding, OnlyChunkedAloneIsUnderstood) {
  const struct {
    const char* codings;
    int code;
  } kCases[] = {
      {"chunked", 0},
      {"Chunked", 0},
      {" \tchunked ", 0},
      {"gzip, chunked", 501},
      {"gzip,chunked", 501},
      {"chunked, chunked", 501},
      {"gzip", 400},
      {"identity", 400},
      {"xchunked", 400},
      {"chunked, identity", 400},
      {"chunked;q=1", 400},
      {"chunked,", 400},
      {"", 400},
  };
  for (const auto& [codings, code] : kCases) {
    EXPECT_EQ(CheckTransferEncoding(codings).code, code) << codings;
  }
  EXPECT_EQ(CheckTransferEncoding("gzip").why, "Transfer-Encoding gzip: expected chunked");
}

TEST(OriginForm, SchemeAndAuthorityAreLeftOut) {
  const struct {
    const char* target;
    const char* origin_form;
  } kCases[] = {
      {"/v1/models/m", "/v1/models/m"},
      {"http://host/v1/models/m", "/v1/models/m"},
      {"HTTPS://host:8501/v1/models/m?a=http://b", "/v1/models/m?a=http://b"},
      {"http://host", "/"},
      {"http://host?a", "/?a"},
      {"http:/v1", "http:/v1"},
      {"ftp://host/a", "ftp://host/a"},
      {"*", "*"},
      {"", ""},
  };
  for (const auto& [target, origin_form] : kCases) EXPECT_EQ(OriginForm(target), origin_form);
}

}  // namespace
}  // namespace colcast::http
