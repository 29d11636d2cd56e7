// Parts of an HTTP message for Boost.Beast. For session.h only.
#ifndef COLCAST_SERVER_HTTP_BEAST_MESSAGE_H_
#define COLCAST_SERVER_HTTP_BEAST_MESSAGE_H_

#include <time.h>

#include <boost/beast.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace colcast::http {

namespace beast = boost::beast;
using Error = boost::system::error_code;
using Field = beast::http::field;

// Now, as HTTP's Date header has it.
inline std::string HttpTime() {
  const time_t now = time(nullptr);
  tm parts;
  char text[40];
  return std::string(
      text, strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts)));
}

// As Beast's string_body, but takes memory for bytes that have come, not for those announced.
struct Body {
  using value_type = std::string;

  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(beast::http::header<isRequest, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>&, Error& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, Error& error) {
      error = {};
      size_t size = 0;
      for (const auto buffer : beast::buffers_range_ref(buffers)) {
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        size += buffer.size();
      }
      return size;
    }
    void finish(Error& error) { error = {}; }

   private:
    value_type& body_;
  };
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_BEAST_MESSAGE_H_
