// For tests: an exchange that keeps the answer.
#ifndef COLCAST_SERVER_API_TESTING_H_
#define COLCAST_SERVER_API_TESTING_H_

#include <future>
#include <memory>
#include <string>

#include "server/api/codec.h"

namespace colcast::api {

struct Sent {
  Status status;
  std::string answer;
};

class FakeExchange final : public Exchange {
 public:
  const char* entrypoint() const override { return "GRPC"; }
  scheduling::Clock::time_point deadline() const override {
    return scheduling::Clock::time_point::max();
  }
  bool cancelled() const override { return false; }
  uint64_t client() const override { return 7; }
  std::string traceparent() override { return ""; }
  std::string caller(const callers::NameSource&) override { return name; }
  Status CheckClientReads(scheduling::Clock::time_point) const override { return reads; }
  void Settle(metrics::CallRecord* record, Status* status) override {
    if (!status->ok()) answer.clear();
    record->request_bytes = 1000;
    record->response_bytes = answer.size();
  }
  void Send(const Status& status) override { sent->set_value({status, answer}); }

  std::string name;
  Status reads;
  std::string answer;
  std::shared_ptr<std::promise<Sent>> sent = std::make_shared<std::promise<Sent>>();
};

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_TESTING_H_
