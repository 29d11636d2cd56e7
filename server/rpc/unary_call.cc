#include "server/rpc/unary_call.h"

#include <memory>

#include "server/rpc/status.h"
#include "server/rpc/unary_service.h"

namespace colcast::rpc {

UnaryCall::UnaryCall(UnaryService* service, int method) : service_(service), method_(method) {
  context_.AsyncNotifyWhenDone(ended_.tag());
  service->Request(method, &context_, &request_, &writer_, &arrived_);
}

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

void UnaryCall::Finish(const Status& status) {
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
