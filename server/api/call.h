// The life of a call, however it came and whatever it asks: from its receipt to its answer.
#ifndef COLCAST_SERVER_API_CALL_H_
#define COLCAST_SERVER_API_CALL_H_

#include <memory>
#include <optional>
#include <string>

#include "server/api/codec.h"
#include "server/backend.h"
#include "server/base/status.h"
#include "server/callers/callers.h"
#include "server/inference/servable.h"
#include "server/metrics/call_record.h"
#include "server/scheduling/job.h"
#include "server/tracing/tracer.h"

namespace colcast::api {

// Owns itself until it is answered: Answer(), and so Run() and Drop(), end with its deletion.
class Call : public scheduling::Job {
 public:
  scheduling::Clock::time_point deadline() const final { return exchange_.deadline(); }
  bool cancelled() const final { return exchange_.cancelled(); }
  // Its caller's, if that has a name; else its connection's or host's.
  uint64_t client() const final;
  void Drop(scheduling::DropReason reason) final { Answer(DropStatus(reason)); }

  // Has a worker run it.
  void Submit() { backend_.workers->Submit(this); }

  // For the codec, while it reads. Enters the servable that `spec` asks for into the record.
  Status FindServable(const ModelSpec& spec);
  // Where the signature is known later than the model.
  void SetSignature(const std::string& name);
  bool has_servable() const { return servable_ != nullptr; }
  const inference::Servable& found() const { return *servable_; }

  // Ends the call: with what the codec has written, or with the error.
  void Answer(Status status);

  const Backend& backend() const { return backend_; }
  metrics::CallRecord& call_record() { return record_; }

 protected:
  // `backend` outlives every call.
  Call(Codec* codec, const Backend& backend);

  tracing::RequestTrace* trace() const { return trace_.get(); }  // null: it is not sampled

  // The messages of an answered call as gRPC has them, for the request log: the codec's or, kept in
  // `made`, the same in that form.
  virtual void GetMessages(Bytes* request, Bytes* response, std::string made[2]) = 0;

 private:
  void LogIfSampled();

  Codec& codec_;
  Exchange& exchange_;
  const Backend& backend_;
  std::shared_ptr<const inference::Servable> servable_;  // owns the record's names
  metrics::CallRecord record_;
  std::unique_ptr<tracing::RequestTrace> trace_;
  std::optional<callers::Caller> caller_;  // nullopt: callers are not told apart
};

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_CALL_H_
