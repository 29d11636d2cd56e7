#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/api/call.h"
#include "server/api/testing.h"
#include "server/metrics/metrics.h"

namespace colcast::api {
namespace {

using testing::ElementsAre;

constexpr size_t kMaxBytes = 256 << 20;
constexpr size_t kMostForWorkers = 512 << 10;

// For each read: the pool that did it, and its limit in bytes.
using Reads = std::vector<std::pair<std::string, size_t>>;

std::string ThisPool() {
  char name[16];
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return std::string(name).substr(0, std::string(name).find_last_of('_'));
}

class FakeCodec final : public FakeTransport<Codec> {
 public:
  FakeCodec(size_t bytes, size_t inflated_bytes, Reads* reads)
      : FakeTransport("Predict"), bytes_(bytes), inflated_bytes_(inflated_bytes), reads_(*reads) {}

  Status Read(Call*) override { return OkStatus(); }

  size_t body_bytes() const override { return bytes_; }
  bool is_compressed() const override { return inflated_bytes_ != bytes_; }
  Status ReadBody(Call*, size_t max_bytes, bool* inflates_too_far) override {
    reads_.emplace_back(ThisPool(), max_bytes);
    *inflates_too_far = inflated_bytes_ > max_bytes;
    return *inflates_too_far ? ResourceExhausted("too long") : OkStatus();
  }

 private:
  const size_t bytes_, inflated_bytes_;
  Reads& reads_;
};

class FakeCall final : public Call {
 public:
  FakeCall(FakeCodec* codec, const Backend& backend, Reads* reads)
      : Call(codec, backend), codec_(codec), reads_(*reads) {}
  void Run(scheduling::Clock::duration, std::vector<scheduling::Taken>*) override {
    reads_.emplace_back("run by " + ThisPool(), 0);
    Answer(Unavailable("it ran"));
  }

 private:
  void GetMessages(Bytes*, Bytes*, std::string[2]) override {}

  const std::unique_ptr<FakeCodec> codec_;
  Reads& reads_;
};

// What happened to a body of a given size.
struct Outcome {
  Outcome(size_t bytes, size_t inflated_bytes) {
    metrics::Metrics metrics;
    scheduling::WorkerPool workers({}), readers(ReaderOptions());
    Backend backend;
    backend.metrics = &metrics;
    backend.workers = &workers;
    backend.readers = &readers;
    auto* const codec = new FakeCodec(bytes, inflated_bytes, &reads);
    const auto sent = codec->sent;
    ReadAndRun(kMaxBytes, new FakeCall(codec, backend, &reads));
    message = sent->get_future().get().status.message;
  }

  Reads reads;
  std::string message;
};

TEST(BodyJobTest, AWorkerReadsAShortBodyAndRunsTheCall) {
  const std::pair<std::string, size_t> run = {"run by worker", 0};
  EXPECT_THAT(Outcome(1000, 1000).reads, ElementsAre(std::pair("worker", kMaxBytes), run));
  EXPECT_THAT(Outcome(1000, 2000).reads, ElementsAre(std::pair("worker", kMostForWorkers), run));
}

TEST(BodyJobTest, ALongBodyIsReadByAReader) {
  EXPECT_THAT(Outcome(1 << 20, 1 << 20).reads, ElementsAre(std::pair("body_reader", kMaxBytes),
                                                           std::pair("run by worker", size_t{0})));
}

TEST(BodyJobTest, AWorkerInflatesAtMostHalfAMegabyte) {
  const Outcome bomb(1000, kMaxBytes + 1);
  EXPECT_THAT(bomb.reads, ElementsAre(std::pair("worker", kMostForWorkers),
                                      std::pair("body_reader", kMaxBytes)));
  EXPECT_EQ(bomb.message, "too long");
  EXPECT_THAT(Outcome(1000, 100 << 20).reads,
              ElementsAre(std::pair("worker", kMostForWorkers), std::pair("body_reader", kMaxBytes),
                          std::pair("run by worker", size_t{0})));
}

}  // namespace
}  // namespace colcast::api
