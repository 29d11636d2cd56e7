// One call that a worker answers: what those of all methods have in common.
#ifndef COLCAST_SERVER_RPC_WORKER_CALL_H_
#define COLCAST_SERVER_RPC_WORKER_CALL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/backend.h"
#include "server/base/status.h"
#include "server/callers/callers.h"
#include "server/http2/call.h"
#include "server/inference/servable.h"
#include "server/metrics/metrics.h"
#include "server/scheduling/worker_pool.h"
#include "server/tracing/tracer.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"

namespace colcast::rpc {

using http2::Call;
using http2::Message;

// Owns itself, until it has answered: Answer(), and so Run() and Drop(), end with its deletion.
class WorkerCall : public scheduling::Job {
 public:
  scheduling::Clock::time_point deadline() const final { return deadline_; }
  bool cancelled() const final { return call_->cancelled(); }
  // Its caller's, if that has a name; else its connection's.
  uint64_t client() const final;
  void Drop(scheduling::DropReason reason) final;

  // Has a worker run it.
  void Submit() { backend_.workers->Submit(this); }

 protected:
  // `api`, for the metrics, is a literal; `backend` outlives every call.
  WorkerCall(const char* api, Call* call, const Backend& backend);

  // To be called before the request is read by the worker: inflates it if it came compressed.
  // RESOURCE_EXHAUSTED if that is too long, or if the client has not read so many answers that it
  // gets no more.
  Status Prepare();
  // As Call has it.
  Status CountResponse(size_t bytes) { return call_->CountResponse(bytes); }
  // Sends trailing metadata with the answer.
  void AddTrailer(const std::string& name, const std::string& value) {
    call_->AddTrailer(name, value);
  }
  // Sends response(), or the status; the call is gone afterwards.
  void Answer(Status status);

  // Finds the servable that `spec` asks for and enters it into the record.
  Status FindServable(const ModelSpec& spec);

  const Message& request() const { return call_->request(); }
  void set_request(const Message& request) { call_->set_request(request); }
  Message* response() const { return call_->response(); }
  const Backend& backend() const { return backend_; }
  bool has_servable() const { return servable_ != nullptr; }
  const inference::Servable& servable() const { return *servable_; }
  metrics::RequestRecord* record() { return &record_; }
  tracing::RequestTrace* trace() const { return trace_.get(); }  // null: it is not sampled

  // Logs an answered request: the messages themselves, unless it is another form of them.
  virtual void Log(const std::shared_ptr<request_log::RequestLogs::Model>& log) const;
  void AddToLog(const std::shared_ptr<request_log::RequestLogs::Model>& log, const Bytes& request,
                const Bytes& response) const;

 private:
  void LogIfSampled() const;

  Call* const call_;  // until it is finished
  const Backend& backend_;
  const scheduling::Clock::time_point received_;
  const scheduling::Clock::time_point deadline_;
  std::shared_ptr<const inference::Servable> servable_;  // the record's names are its
  metrics::RequestRecord record_;
  std::unique_ptr<tracing::RequestTrace> trace_;
  std::optional<callers::Caller> caller_;  // nullopt: callers are not told apart
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_WORKER_CALL_H_
