#include "server/http2/call.h"

#include <algorithm>
#include <utility>

#include "server/base/text.h"
#include "server/http2/connection.h"
#include "server/http2/grpc.h"

namespace colcast::http2 {
namespace {

constexpr size_t kHeaderOverhead = 32;  // per header, as HTTP/2 counts

// Headers of HTTP and gRPC, which handlers do not see.
bool IsReserved(std::string_view name) {
  return name.empty() || name[0] == ':' || name == "te" || name == "user-agent" ||
         name == "accept-encoding" || StartsWith(name, "grpc-");
}

}  // namespace

Call::Call(std::shared_ptr<Connection> connection, int32_t id)
    : connection_(std::move(connection)),
      id_(id),
      reader_(connection_->shared().options.max_request_bytes),
      unread_(&connection_->poller().hosts(), connection_->host().get()) {}

void Call::AddHeader(std::string_view name, std::string_view value) {
  header_bytes_ += name.size() + value.size() + kHeaderOverhead;
  if (header_bytes_ > connection_->shared().options.max_header_bytes) return;
  if (name == ":path") {
    path_ = value;
  } else if (name == ":method") {
    http_method_ = value;
  } else if (name == "content-type") {
    content_type_ = value;
  } else if (name == "grpc-timeout") {
    const auto timeout = ParseTimeout(value);
    if (timeout) {
      deadline_ = scheduling::Clock::now() + *timeout;
      bad_timeout_.reset();
    } else {
      bad_timeout_ = value;
    }
  } else if (name == "grpc-encoding") {
    reader_.set_encoding(std::string(value));
  } else if (!IsReserved(name)) {
    metadata_.emplace_back(name, value);
  }
}

std::optional<std::string> Call::Metadata(std::string_view name) const {
  const auto last = std::find_if(metadata_.rbegin(), metadata_.rend(),
                                 [name](const auto& each) { return each.first == name; });
  if (last == metadata_.rend()) return std::nullopt;
  return last->second;
}

namespace {

// Memory for an inflated request. Counts towards its host's memory until it is freed.
struct InflatedBlock {
  InflatedBlock(net::Budget* budget, std::shared_ptr<net::Host> of, size_t size)
      : host(std::move(of)), held(budget, &host->bodies), bytes(new uint8_t[size]) {}

  const std::shared_ptr<net::Host> host;
  net::Holding held;
  const std::unique_ptr<uint8_t[]> bytes;
};

}  // namespace

Status Call::InflateRequest(size_t max_bytes) {
  net::Budget* const budget = &connection_->poller().hosts().bodies;
  return Inflate(max_bytes, &request_, [&](size_t size, std::shared_ptr<uint8_t[]>* block) {
    if (cancelled()) return Error(StatusCode::kCancelled, "the client hung up");
    const auto made = std::make_shared<InflatedBlock>(budget, connection_->host(), size);
    if (!made->held.Take(size)) {
      return ResourceExhausted(
          "requests in memory leave no room to inflate this one: ", budget->max_bytes(),
          " bytes for all, ", budget->max_bytes_per_host(),
          " for those of one host (--max_rest_bytes); try again later");
    }
    *block = std::shared_ptr<uint8_t[]>(made, made->bytes.get());
    return OkStatus();
  });
}

Status Call::CheckClientReads(scheduling::Clock::time_point since) const {
  return connection_->poller().hosts().CheckUnread(*connection_->host(), since);
}

void Call::Finish(Status status) {
  if (is_stream()) return connection_->AnswerSoon(this, std::nullopt, std::move(status));
  if (status.ok()) status = CountResponse(response_.size());
  // A failed call's response is not sent, so it stops counting now: the client's next request may
  // arrive before the call is destroyed.
  if (!status.ok()) unread_.Return();
  std::optional<Message> message;
  if (status.ok()) message = std::move(response_);
  connection_->Answer(this, std::move(message), std::move(status));
}

void Call::Send(Message message) {
  connection_->AnswerSoon(this, std::move(message), std::nullopt);
}

void Call::Release() {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace colcast::http2
