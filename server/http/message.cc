#include "server/http/message.h"

#include <algorithm>

#include "server/http/json_text.h"
#include "server/wire/utf8.h"

namespace colcast::http {

Response ErrorResponse(int code, std::string_view message) {
  std::string text(message);
  if (!IsValidUtf8(text)) {
    // What a request sent that no JSON could hold.
    std::replace_if(
        text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }, '?');
  }
  Response response;
  response.code = code;
  response.body = "{ \"error\": ";
  AppendString(text, &response.body);
  response.body += " }";
  return response;
}

}  // namespace colcast::http
