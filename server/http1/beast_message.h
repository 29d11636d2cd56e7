// Message types for Boost.Beast. Used only by connection.h.
#ifndef COLCAST_SERVER_HTTP1_BEAST_MESSAGE_H_
#define COLCAST_SERVER_HTTP1_BEAST_MESSAGE_H_

#include <time.h>

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/base/status.h"
#include "server/http1/message.h"
#include "server/http1/request_memory.h"
#include "server/http1/slice_buffer.h"

namespace colcast::http {

namespace beast = boost::beast;
using Error = boost::system::error_code;
using Field = beast::http::field;

inline std::string_view ToStd(beast::string_view text) { return {text.data(), text.size()}; }

// The current time in the form of HTTP's Date header.
inline std::string HttpTime() {
  const time_t now = time(nullptr);
  tm parts;
  char text[40];
  return std::string(
      text, strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts)));
}

// A body as it arrives: kept, or skipped if it is unwanted or there is no memory for it.
class IncomingBody {
 public:
  // Keeps the body; without this call it is skipped.
  void KeepIn(std::unique_ptr<RequestMemory> memory) {
    memory_ = std::move(memory);
    bytes_ = SliceBuffer(memory_.get());
  }

  void Append(const void* data, size_t size) {
    ++appends_;
    received_ += size;
    if (memory_ == nullptr || !refusal_.ok()) return;
    refusal_ = WithinMemory([&] {
      try {
        bytes_.Append(data, size);
        return OkStatus();
      } catch (const OverMemoryLimit&) {
        return memory_->Refusal(&too_large_);
      }
    });
    if (!refusal_.ok()) bytes_.Clear();
  }

  size_t received() const { return received_; }
  int appends() const { return appends_; }  // number of chunks, or of reads
  // Why a wanted body was not kept. too_large(): it never can be.
  const Status& refusal() const { return refusal_; }
  bool too_large() const { return too_large_; }

  void MoveTo(Request* request) {
    request->has_body = memory_ != nullptr;
    request->body = std::move(bytes_);
    request->memory = std::move(memory_);
  }

 private:
  std::unique_ptr<RequestMemory> memory_;
  SliceBuffer bytes_;
  size_t received_ = 0;
  int appends_ = 0;
  Status refusal_;
  bool too_large_ = false;
};

// Like Beast's string_body, but allocates memory for bytes received, not for those announced.
struct Body {
  using value_type = IncomingBody;

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
        body_.Append(buffer.data(), buffer.size());
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

#endif  // COLCAST_SERVER_HTTP1_BEAST_MESSAGE_H_
