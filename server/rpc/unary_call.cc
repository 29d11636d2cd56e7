#include "server/rpc/unary_call.h"

#include <memory>
#include <string>

#include "server/rpc/peer.h"
#include "server/rpc/unary_service.h"

namespace colcast::rpc {

grpc::Status ToGrpc(const Status& status) {
  // gRPC's clients refuse headers of more than 8 KiB, and then see neither code nor message. Bytes
  // that are no ASCII take three each there.
  constexpr size_t kMaxMessageBytesSent = 2000;
  std::string message = status.message.substr(0, kMaxMessageBytesSent);
  if (message.size() < status.message.size()) message += "...";
  return grpc::Status(static_cast<grpc::StatusCode>(status.code), message);
}

UnaryCall::UnaryCall(UnaryService* service, int method) : service_(service), method_(method) {
  context_.AsyncNotifyWhenDone(ended_.tag());
  service->Request(method, &context_, &request_, &writer_, &arrived_);
}

UnaryCall::~UnaryCall() { CountNoResponse(); }

void UnaryCall::Arrived(bool ok) {
  if (!ok) {
    delete this;
    return;
  }
  Await(service_, method_);
  service_->Handle(method_, this);
}

void UnaryCall::Ended(bool) {
  cancelled_.store(context_.IsCancelled(), std::memory_order_relaxed);
  Release();
}

void UnaryCall::Sent(bool) { Release(); }

void UnaryCall::Release() {
  if (events_to_come_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

grpc::CompletionQueue* UnaryCall::events() const { return service_->loop()->arrivals(); }

std::optional<std::string> UnaryCall::Metadata(const char* name) const {
  const auto place = context_.client_metadata().find(name);
  if (place == context_.client_metadata().end()) return std::nullopt;
  return std::string(place->second.data(), place->second.size());
}

// Answers that have been read count until the ends of their calls are handled, and the client may
// be quicker.
template <typename Count>
Status UnaryCall::OnceEndsAreHandled(const Count& count) const {
  Status status = count();
  if (status.ok()) return status;
  service_->loop()->HandleEndings();
  return count();
}

Status UnaryCall::CheckClientReads() const {
  const UnreadAnswers& unread = *service_->unread();
  if (!unread.MayBeFull()) return OkStatus();
  return OnceEndsAreHandled([&] { return unread.Check(HostOf(context_.peer())); });
}

Status UnaryCall::CountResponse(size_t bytes) {
  if (unread_ || bytes <= UnreadAnswers::kSmallBytes) return OkStatus();
  host_ = HostOf(context_.peer());
  Status status = OnceEndsAreHandled([&] { return service_->unread()->Add(host_, bytes); });
  if (status.ok()) {
    unread_ = service_->unread();
    counted_bytes_ = bytes;
  }
  return status;
}

void UnaryCall::CountNoResponse() {
  if (unread_) unread_->Remove(host_, counted_bytes_);
  unread_.reset();
}

void UnaryCall::Finish(Status status) {
  if (status.ok()) status = CountResponse(response_.Length());
  // One that was counted and then found no memory: the client's next request may be here first.
  if (!status.ok()) CountNoResponse();
  const std::shared_ptr<EventLoop> loop = service_->loop();
  loop->ExpectEndings(kEndings);
  if (status.ok()) {
    writer_.Finish(response_, grpc::Status::OK, sent_.tag());
  } else {
    writer_.FinishWithError(ToGrpc(status), sent_.tag());
  }
  loop->HandleEndings();
}

}  // namespace colcast::rpc
