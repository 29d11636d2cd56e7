#include "server/http2/call.h"

#include <utility>

#include "server/http2/connection.h"
#include "server/http2/grpc_headers.h"

namespace colcast::http2 {
namespace {

constexpr size_t kHeaderOverhead = 32;  // of each, in HTTP/2's own count

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Of HTTP and of gRPC: read by nobody else.
bool IsReserved(std::string_view name) {
  return name.empty() || name[0] == ':' || name == "te" || name == "user-agent" ||
         name == "accept-encoding" || StartsWith(name, "grpc-");
}

}  // namespace

Call::Call(std::shared_ptr<Connection> connection, int32_t id)
    : connection_(std::move(connection)),
      id_(id),
      reader_(connection_->shared().options.max_request_bytes) {}

Call::~Call() { CountNoResponse(); }

void Call::AddHeader(std::string_view name, std::string_view value) {
  header_bytes_ += name.size() + value.size() + kHeaderOverhead;
  if (header_bytes_ > connection_->shared().options.max_header_bytes) return;
  if (name == ":path") {
    path_ = value;
  } else if (name == "content-type") {
    content_type_ = value;
  } else if (name == "grpc-timeout") {
    const auto timeout = ParseTimeout(value);
    if (timeout) deadline_ = scheduling::Clock::now() + *timeout;
  } else if (name == "grpc-encoding") {
    reader_.set_encoding(std::string(value));
  } else if (!IsReserved(name)) {
    metadata_.emplace_back(name, value);
  }
}

std::optional<std::string> Call::Metadata(std::string_view name) const {
  for (const auto& [each, value] : metadata_) {
    if (each == name) return value;
  }
  return std::nullopt;
}

const std::string& Call::peer() const { return connection_->peer(); }
const std::string& Call::certificate_name() const { return connection_->certificate_name(); }
uint64_t Call::connection() const { return connection_->number(); }

Status Call::CheckClientReads() const {
  return connection_->shared().unread.Check(connection_->host());
}

Status Call::CountResponse(size_t bytes) {
  if (counted_bytes_ > 0 || bytes <= UnreadAnswers::kSmallBytes) return OkStatus();
  Status status = connection_->shared().unread.Add(connection_->host(), bytes);
  if (status.ok()) counted_bytes_ = bytes;
  return status;
}

void Call::CountNoResponse() {
  const size_t bytes = counted_bytes_.exchange(0);
  if (bytes > 0) connection_->shared().unread.Remove(connection_->host(), bytes);
}

void Call::Finish(Status status) {
  if (status.ok()) status = CountResponse(response_.size());
  // One that was counted and then found no memory: the client's next request may be here first.
  if (!status.ok()) CountNoResponse();
  std::optional<Message> message;
  if (status.ok()) message = std::move(response_);
  connection_->Answer(this, std::move(message), std::move(status));
}

void Call::Send(Message message) {
  connection_->AnswerSoon(this, std::move(message), std::nullopt);
}
void Call::End(Status status) { connection_->AnswerSoon(this, std::nullopt, std::move(status)); }

void Call::Release() {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace colcast::http2
