#include "server/http/message.h"

#include "server/http/json_text.h"

namespace colcast::http {

Response ErrorResponse(int code, std::string_view message) {
  Response response;
  response.code = code;
  response.body = "{ \"error\": ";
  AppendString(message, &response.body);
  response.body += " }";
  return response;
}

}  // namespace colcast::http
