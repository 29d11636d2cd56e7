#include "server/sender/sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/http2/server.h"
#include "server/http2/testing.h"
#include "server/net/testing.h"

namespace colcast::sender {
namespace {

using testing::HasSubstr;

// Answers "hold" as soon as `hold` such calls wait, "fail" with an error, and any other text with
// that text twice.
class TestServer {
 public:
  explicit TestServer(const std::string& path, size_t hold = 0) : hold_(hold) {
    unlink(path.c_str());
    http2::Methods methods;
    methods.emplace("/test.Service/Call", http2::Method{[this](http2::Call* call) { Do(call); }});
    server_ = std::make_unique<http2::Server>(http2::ConnectionOptions(), methods, &poller_);
    EXPECT_TRUE(server_->Listen(path).ok());
    thread_ = std::make_unique<net::PollingThread>(&poller_);
  }
  ~TestServer() {
    for (http2::Call* call : held_) call->Finish(OkStatus());
    server_.reset();
    thread_.reset();
  }

  std::vector<std::string> texts() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return texts_;
  }

 private:
  void Do(http2::Call* call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string text = call->request().bytes().ToString();
    texts_.push_back(text);
    if (text == "hold") {
      held_.push_back(call);
      if (held_.size() < hold_) return;
      for (http2::Call* each : std::exchange(held_, {})) each->Finish(OkStatus());
    } else if (text == "fail") {
      call->Finish(ResourceExhausted("call ", texts_.size()));
    } else {
      *call->response() = http2::Of(text + text);
      call->Finish(OkStatus());
    }
  }

  const size_t hold_;
  net::Poller poller_;
  net::Standby standby_{&poller_};
  std::mutex mutex_;
  std::vector<http2::Call*> held_;
  std::vector<std::string> texts_;
  std::unique_ptr<http2::Server> server_;
  std::unique_ptr<net::PollingThread> thread_;
};

class SenderTest : public ::testing::Test {
 protected:
  SenderTest() {
    EXPECT_TRUE(http2::Target::Parse("unix:" + path_, &options_.target).ok());
    options_.method = "/test.Service/Call";
    options_.connections = 2;
  }
  ~SenderTest() override { unlink(path_.c_str()); }

  Outcome Run(const Job& job) {
    Sender sender(options_, job);
    EXPECT_TRUE(sender.Connect().ok());
    return sender.Run();
  }

  const std::string path_ = ::testing::TempDir() + "sender_test." + std::to_string(getpid());
  SenderOptions options_;
};

std::vector<StatusCode> Codes(const Outcome& outcome) {
  std::vector<StatusCode> codes;
  for (const SentCall& call : outcome.calls) codes.push_back(static_cast<StatusCode>(call.code));
  return codes;
}

TEST_F(SenderTest, CallsDoNotWaitForEachOther) {
  TestServer server(path_, 50);
  const Outcome outcome = Run({{"hold"}, std::vector<Job::Call>(50, {0, 0})});
  EXPECT_THAT(Codes(outcome), testing::Each(StatusCode::kOk));
}

TEST_F(SenderTest, TheScheduleDecidesWhatIsSentAndWhen) {
  TestServer server(path_);
  options_.connections = 1;
  const Outcome outcome = Run({{"ann", "bo"}, {{0, 1}, {0.02, 0}, {0.03, 1}}});
  EXPECT_THAT(server.texts(), testing::ElementsAre("bo", "ann", "bo"));
  EXPECT_GE(outcome.calls[1].sent, 0.02);
  EXPECT_GE(outcome.calls[2].sent, 0.03);
  EXPECT_GE(outcome.calls[2].answered, outcome.calls[2].sent);
  EXPECT_GE(outcome.seconds, outcome.calls[2].answered);
  EXPECT_EQ(outcome.calls[1].answer_bytes, 6u);
}

TEST_F(SenderTest, AnswersAreKeptWithTheirNumbers) {
  TestServer server(path_);
  options_.keep_every = 2;
  const Outcome outcome = Run({{"ann", "bo"}, {{0, 0}, {0, 1}, {0, 1}, {0, 0}, {0, 0}}});
  EXPECT_THAT(outcome.answers,
              testing::UnorderedElementsAre(std::pair<uint64_t, std::string>(0, "annann"),
                                            std::pair<uint64_t, std::string>(2, "bobo"),
                                            std::pair<uint64_t, std::string>(4, "annann")));
}

TEST_F(SenderTest, ErrorsAreCountedByCodeWithTheFirstMessage) {
  TestServer server(path_);
  options_.connections = 1;
  const Outcome outcome = Run({{"fail", "ann"}, {{0, 0}, {0, 0}, {0, 1}}});
  EXPECT_THAT(Codes(outcome),
              testing::ElementsAre(StatusCode::kResourceExhausted, StatusCode::kResourceExhausted,
                                   StatusCode::kOk));
  ASSERT_EQ(outcome.errors.count(StatusCode::kResourceExhausted), 1u);
  const CodeErrors& exhausted = outcome.errors.at(StatusCode::kResourceExhausted);
  EXPECT_EQ(exhausted.count, 2);
  EXPECT_EQ(exhausted.first, "call 1");
}

TEST_F(SenderTest, ACallThatIsNotAnsweredInTimeEnds) {
  TestServer server(path_, 2);
  options_.timeout = std::chrono::milliseconds(50);
  const Outcome outcome = Run({{"hold"}, {{0, 0}}});
  EXPECT_THAT(Codes(outcome), testing::ElementsAre(StatusCode::kDeadlineExceeded));
}

TEST_F(SenderTest, CallsToAServerThatIsNotThereSaySo) {
  const Outcome outcome = Run({{"ann"}, {{0, 0}, {0.15, 0}}});
  EXPECT_THAT(Codes(outcome), testing::Each(StatusCode::kUnavailable));
  EXPECT_THAT(outcome.errors.at(StatusCode::kUnavailable).first,
              testing::AllOf(HasSubstr("cannot connect to unix:"), HasSubstr("No such file")));
}

TEST_F(SenderTest, AServerThatComesBackIsConnectedToAgain) {
  auto server = std::make_unique<TestServer>(path_);
  const Job job{{"ann"}, {{0, 0}, {0, 0}, {0.4, 0}, {0.4, 0}}};
  Sender sender(options_, job);
  ASSERT_TRUE(sender.Connect().ok());
  server.reset();
  server = std::make_unique<TestServer>(path_);
  const Outcome outcome = sender.Run();
  EXPECT_EQ(outcome.calls[2].code, 0u);
  EXPECT_EQ(outcome.calls[3].code, 0u);
}

Outcome FourCalls() {
  Outcome outcome;
  outcome.seconds = 2;
  outcome.calls = {{0, 0.25, 0, 7}, {0.75, 1, 0, 7}, {1, 1.75, 0, 7}, {1, 1, 8, 0}};
  outcome.errors[StatusCode::kResourceExhausted] = {1, "the queue is full"};
  outcome.answers = {{2, "answer"}};
  return outcome;
}
const Job kJob{{"a"}, {{0, 0}, {0.5, 0}, {1, 0}, {1, 0}}};

TEST(FiguresTest, LatenciesStartWhenACallIsDueAndExcludeErrors) {
  const std::string figures = Figures(kJob, FourCalls());
  EXPECT_THAT(figures, HasSubstr(R"("calls":4,"answered":3,"seconds":2.0)"));
  EXPECT_THAT(figures, HasSubstr(R"("latency_ms":{"p50":500.0,"p95":750.0,"p99":750.0})"));
  EXPECT_THAT(figures, HasSubstr(R"("lateness_ms":{"p50":0.0,"p95":250.0,"p99":250.0})"));
  EXPECT_THAT(
      figures,
      HasSubstr(R"("errors":{"RESOURCE_EXHAUSTED":{"count":1,"first":"the queue is full"}})"));
}

TEST(FiguresTest, RecordsAreTheCallsAndThenTheAnswers) {
  const Outcome outcome = FourCalls();
  const std::string records = Records(outcome);
  const size_t calls = outcome.calls.size() * sizeof(SentCall);
  ASSERT_EQ(records.size(), calls + 3 * sizeof(uint64_t) + 6);
  EXPECT_EQ(std::memcmp(records.data(), outcome.calls.data(), calls), 0);
  const uint64_t head[] = {1, 2, 6};
  EXPECT_EQ(std::memcmp(records.data() + calls, head, sizeof(head)), 0);
  EXPECT_EQ(records.substr(calls + sizeof(head)), "answer");
}

}  // namespace
}  // namespace colcast::sender
