// How a call came, and how it is answered: over gRPC or REST.
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

  virtual const char* entrypoint() const = 0;  // for the metrics: GRPC or REST
  virtual scheduling::Clock::time_point deadline() const = 0;
  virtual bool cancelled() const = 0;     // the client has hung up
  virtual uint64_t client() const = 0;    // the same for all calls of a connection or host
  virtual std::string traceparent() = 0;  // empty: the client sent none
  virtual std::string caller(const callers::NameSource& names) = 0;  // empty: no name
  virtual size_t request_bytes() const = 0;

  // Decides what is sent: the answer that the codec has written, or the error. Where the answer
  // itself cannot be sent, *status becomes the error. Returns the bytes of the answer.
  virtual size_t Settle(const metrics::CallRecord& record, Status* status) = 0;
  // Sends it. Once, after Settle().
  virtual void Send(const Status& status) = 0;
};

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_EXCHANGE_H_
