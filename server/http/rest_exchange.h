// An HTTP exchange in the form that calls need (server/api).
#ifndef COLCAST_SERVER_HTTP_REST_EXCHANGE_H_
#define COLCAST_SERVER_HTTP_REST_EXCHANGE_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "server/api/exchange.h"
#include "server/http1/message.h"

namespace colcast::http {

class RestExchange final : public api::Exchange {
 public:
  using Clock = scheduling::Clock;

  // `timeout` counts from now; 0 for none.
  RestExchange(std::shared_ptr<http::Exchange> exchange, std::chrono::milliseconds timeout)
      : exchange_(std::move(exchange)),
        deadline_(timeout.count() > 0 ? Clock::now() + timeout : Clock::time_point::max()),
        request_bytes_(exchange_->request().body.size()) {}

  const char* entrypoint() const override { return "REST"; }
  Clock::time_point deadline() const override { return deadline_; }
  bool cancelled() const override { return exchange_->cancelled(); }
  uint64_t client() const override { return exchange_->client(); }
  std::string traceparent() override { return exchange_->request().traceparent; }
  std::string caller(const callers::NameSource&) override { return exchange_->request().caller; }
  size_t request_bytes() const override { return request_bytes_; }
  size_t Settle(const metrics::CallRecord&, Status* status) override {
    if (!status->ok()) {
      response_ = too_large_ ? ErrorResponse(413, status->message) : ErrorResponse(*status);
    }
    return response_.body.size();
  }
  void Send(const Status&) override { exchange_->Answer(std::move(response_)); }

  // The time spent in a low-priority reader does not count.
  void Extend(Clock::duration time) {
    if (deadline_ != Clock::time_point::max()) deadline_ += time;
  }
  // Answers 413 instead of 429, because retrying does not make a body smaller.
  void set_too_large(bool too_large) { too_large_ = too_large; }

  Request& request() const { return exchange_->request(); }
  Response* response() { return &response_; }

 private:
  const std::shared_ptr<http::Exchange> exchange_;
  Clock::time_point deadline_;
  const size_t request_bytes_;
  bool too_large_ = false;
  Response response_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_REST_EXCHANGE_H_
