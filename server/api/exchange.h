// The transport's side of a call, gRPC or REST: properties of the request, and sending the answer.
#ifndef COLCAST_SERVER_API_EXCHANGE_H_
#define COLCAST_SERVER_API_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/base/status.h"
#include "server/callers/callers.h"
#include "server/metrics/call_record.h"
#include "server/scheduling/job.h"

namespace colcast::api {

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const char* entrypoint() const = 0;  // for the metrics: "GRPC" or "REST"
  virtual scheduling::Clock::time_point deadline() const = 0;
  virtual bool cancelled() const = 0;     // whether the client has hung up
  virtual uint64_t client() const = 0;    // the same for all calls of a connection or host
  virtual std::string traceparent() = 0;  // empty if the client sent none
  // Empty if the caller has no name.
  virtual std::string caller(const callers::NameSource& names) = 0;
  virtual size_t request_bytes() const = 0;
  // RESOURCE_EXHAUSTED if the client's host has too many unread answers for one to a call received
  // at `since`.
  virtual Status CheckClientReads(scheduling::Clock::time_point since) const = 0;

  // Decides what to send: the codec's answer, or the error. If the answer cannot be sent, sets
  // *status to the error. Returns the answer's size in bytes.
  virtual size_t Settle(const metrics::CallRecord& record, Status* status) = 0;
  // Sends it. Called once, after Settle().
  virtual void Send(const Status& status) = 0;
};

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_EXCHANGE_H_
