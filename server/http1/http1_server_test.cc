#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "server/http1/connection.h"
#include "server/http1/server.h"
#include "server/net/testing.h"
#include "server/wire/inflater_testing.h"

namespace colcast::http {
namespace {

using namespace std::string_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A plain socket, to send what client libraries cannot.
class Client {
 public:
  explicit Client(const HttpServer& server) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const std::string address = server.address();
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(std::stoi(address.substr(address.find(':') + 1)));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    timeval patience = {20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  ~Client() { Close(); }

  // Whether the connection accepted all of the text.
  bool Send(const std::string& text) {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

  // Reads until `end`, or until the server closes the connection.
  std::string ReadUntil(const std::string& end) {
    std::string got;
    char chunk[4096];
    while (end.empty() || got.find(end) == std::string::npos) {
      const ssize_t size = recv(fd_, chunk, sizeof(chunk), 0);
      if (size < 0) return got + "<no end>";
      if (size == 0) break;
      got.append(chunk, size);
    }
    return got;
  }
  std::string ReadAll() { return ReadUntil(""); }
  // The first bytes that arrive within `time`; empty if none arrive.
  std::string ReadWithin(milliseconds time) {
    pollfd readable = {fd_, POLLIN, 0};
    char chunk[4096];
    if (poll(&readable, 1, static_cast<int>(time.count())) != 1) return "";
    return std::string(chunk, std::max<ssize_t>(0, recv(fd_, chunk, sizeof(chunk), 0)));
  }

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

// More than an unread socket can buffer.
constexpr size_t kLarge = 32 << 20;

constexpr char kClose[] = "Connection: close\r\n";
constexpr char kChunked[] = "Transfer-Encoding: chunked\r\n";

std::string Get(const std::string& target, const std::string& headers = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n";
}
std::string Post(const std::string& target, const std::string& headers, const std::string& body) {
  return "POST " + target + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + body;
}
std::string LengthOf(size_t size) { return "Content-Length: " + std::to_string(size) + "\r\n"; }
std::string PostOf(size_t size, const std::string& target = "/echo") {
  return Post(target, LengthOf(size), std::string(size, 'x'));
}

// Answers /echo with the request's body, /long with 100,000 bytes, and /later on another thread;
// leaves /wait unanswered.
class HttpServerTest : public testing::Test {
 protected:
  explicit HttpServerTest(size_t max_body_bytes = size_t{2} << 30)
      : poller_(32 << 20, max_body_bytes) {}

  void Start() {
    options_.host = "127.0.0.1";
    Router router;
    router.AddPage("/long", [] { return Of(std::string(100'000, 'x')); });
    const auto add = [&](const char* path, std::function<std::string(const Request&)> answer) {
      router.AddTree(path, [answer](std::shared_ptr<Exchange> exchange) {
        exchange->Answer(Of(answer(exchange->request())));
      });
    };
    add("/large", [](const Request&) { return std::string(kLarge, 'x'); });
    add("/caller", [](const Request& request) {
      return '<' + request.caller + '>' + (request.gzip ? " gzip" : "");
    });
    add("/echo", [](const Request& request) {
      return request.method + ' ' + request.body.bytes().ToString();
    });
    router.AddTree("/later", [](std::shared_ptr<Exchange> exchange) {
      std::thread([exchange = std::move(exchange)] { exchange->Answer({}); }).detach();
    });
    router.AddTree("/wait", [this](std::shared_ptr<Exchange> exchange) {
      waiting_.set_value(std::move(exchange));
    });
    const Status status = HttpServer::Start(options_, std::move(router), &poller_, &server_);
    ASSERT_TRUE(status.ok()) << status.message;
  }
  static Response Of(std::string body) {
    Response response;
    response.body = std::move(body);
    return response;
  }

  std::string Ask(const std::string& request) {
    Client client(*server_);
    client.Send(request);
    return client.ReadAll();
  }
  std::shared_ptr<Exchange> AskToWait(Client* client) {
    client->Send(Get("/wait"));
    return waiting_.get_future().get();
  }

  HttpServer::Options options_;
  net::Poller poller_;
  net::Standby standby_{&poller_};
  net::PollingThread thread_{&poller_};
  std::promise<std::shared_ptr<Exchange>> waiting_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, OneConnectionServesSeveralRequests) {
  Start();
  Client client(*server_);
  for (const std::string body : {"one", "two", "three"}) {
    client.Send(Post("/echo", LengthOf(body.size()), body));
    EXPECT_THAT(client.ReadUntil(body),
                AllOf(HasSubstr("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\n\r\nPOST " + body)));
  }
}

TEST_F(HttpServerTest, PipelinedAndChunkedRequestsAreRead) {
  Start();
  const std::string answer =
      Ask(Post("/echo", kChunked, "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n") + Get("/echo", kClose));
  EXPECT_THAT(answer, AllOf(HasSubstr("POST abcde"), HasSubstr("GET ")));
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrderWhileSeveralThreadsPoll) {
  Start();
  std::atomic<bool> ended{false};
  std::vector<std::thread> polling, asking;
  for (int i = 0; i < 3; ++i) {
    polling.emplace_back([&] {
      while (!ended) poller_.Poll(scheduling::Clock::now() + milliseconds(10));
    });
  }
  for (int i = 0; i < 8; ++i) {
    asking.emplace_back([this] {
      Client client(*server_);
      for (int round = 0; round < 20; ++round) {
        client.Send(Get("/later") + Get("/long") + Get("/later") +
                    Post("/echo", LengthOf(4), "last"));
        const std::string answers = client.ReadUntil("POST last");
        size_t count = 0;
        for (size_t at = 0; (at = answers.find("200 OK", at)) != std::string::npos; ++at) ++count;
        EXPECT_EQ(count, 4u);
      }
    });
  }
  for (std::thread& thread : asking) thread.join();
  ended = true;
  for (std::thread& thread : polling) thread.join();
}

TEST_F(HttpServerTest, Expect100ContinueIsAnsweredBeforeTheBodyArrives) {
  Start();
  Client client(*server_);
  client.Send(Post("/echo", "Expect: 100-continue\r\n" + LengthOf(2), ""));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("hi");
  EXPECT_THAT(client.ReadUntil("POST hi"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, HeadIsAnsweredWithoutABody) {
  Start();
  const std::string answer = Ask("HEAD /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 100000\r\n"));
  EXPECT_EQ(answer.find('x', answer.find("\r\n\r\n")), std::string::npos);
}

TEST_F(HttpServerTest, LargeAnswersAreCompressedIfTheClientAcceptsGzip) {
  Start();
  const std::string answer = Ask(Get("/long", std::string(kClose) + "Accept-Encoding: gzip\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Encoding: gzip\r\n"));
  std::string body;
  ASSERT_TRUE(InflateAll(answer.substr(answer.find("\r\n\r\n") + 4), 1 << 20, &body).ok());
  EXPECT_EQ(body, std::string(100'000, 'x'));
  EXPECT_THAT(Ask(Get("/long", kClose)), Not(HasSubstr("Content-Encoding")));
}

// The next request must not be answered: a proxy may think that it begins elsewhere.
TEST_F(HttpServerTest, AMalformedOrTooLargeRequestClosesTheConnection) {
  options_.max_header_bytes = 1000;
  options_.max_body_bytes = 10;
  Start();
  const std::string post = "POST /echo HTTP/1.1\r\n";
  const std::string chunked = Post("/echo", kChunked, "");
  const std::string many(100'000, 'a');
  std::string trailers;
  for (int i = 0; i < 20'000; ++i) trailers += "X: y\r\n";
  const std::pair<const char*, std::string> kRefused[] = {
      {"400 ", "hello\r\n\r\n"},
      {"400 ", "GET\r\n\r\n"},
      {"400 ", "GET / HTTP/9.9\r\n\r\n"},
      {"400 ", Get("/", "no colon\r\n")},
      {"400 ", post + "Content-Length: 2\r\n\r\nhi"},  // without Host
      {"400 ", post + "Host: x\r\nHost: y\r\nContent-Length: 2\r\n\r\nhi"},
      {"400 ", Post("/echo", "Content-Length: -1\r\n", "")},
      {"400 ", Post("/echo", "Content-Length: 2, 2\r\n", "hi")},
      {"400 ", Post("/echo", LengthOf(2) + LengthOf(2), "hi")},
      {"400 ", Post("/echo", "A: b\r\n c\r\n" + LengthOf(2), "hi")},
      {"400 ", Post("/echo", "A: b\r\n\tContent-Length: 7\r\n" + LengthOf(2), "hi")},
      {"400 ", Post("/echo", "Transfer-Encoding: xchunked\r\n", "")},
      {"400 ", Post("/echo", std::string(kChunked) + "Transfer-Encoding: identity\r\n", "")},
      {"400 ", Post("/echo", "Transfer-Encoding: identity\r\n" + LengthOf(2), "")},
      {"400 ", "POST /echo HTTP/1.0\r\n" + std::string(kChunked) + "\r\n"},
      {"400 ", Post("/echo", "Transfer-Encoding: gzip, chunked\r\n", "")},
      {"400 ", chunked + "xyz\r\n"},
      {"400 ", chunked + "2;a=\"\n\"\r\nhi\r\n0\r\n\r\n"},
      {"400 ", chunked + "2;a=\"b\0\"\r\nhi\r\n0\r\n\r\n"s},
      {"400 ", chunked + "2;a=\"\x7f\"\r\nhi\r\n0\r\n\r\n"},
      {"413 ", Post("/echo", LengthOf(11), "")},
      {"413 ", chunked + "b\r\n01234567890\r\n0\r\n\r\n"},
      {"431 ", Get("/", "A: " + std::string(2000, 'a') + "\r\n")},
      {"431 ", chunked + "2;" + many + "\r\nhi\r\n0\r\n\r\n"},
      {"431 ", chunked + "2\r\nhi\r\n0;" + many + "\r\n\r\n"},
      {"431 ", chunked + "2\r\nhi\r\n0\r\n" + trailers + "\r\n"}};
  for (const auto& [code, request] : kRefused) {
    const std::string answer = Ask(request + Get("/echo/next"));
    EXPECT_THAT(answer, AllOf(StartsWith(std::string("HTTP/1.1 ") + code),
                              HasSubstr("{ \"error\": \""), HasSubstr("Connection: close")))
        << request.substr(0, 200);
    EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << "the next request was answered";
  }
  for (const std::string& request :
       {Post("/echo", kClose + LengthOf(8), "{\n  \"a\"}"), "GET /echo HTTP/1.0\r\n\r\n"s,
        Post("/echo", std::string(kClose) + kChunked,
             "2;a=\"b c\t\"\r\nhi\r\n0\r\nX: y\r\n\r\n")}) {
    EXPECT_THAT(Ask(request), StartsWith("HTTP/1.1 200 ")) << request;
  }
  Client client(*server_);
  EXPECT_TRUE(client.Send(chunked + "2;" + std::string(8 << 20, 'a'))) << "it was reset";
  EXPECT_THAT(client.ReadAll(), HasSubstr("431 "));
}

class LittleMemoryTest : public HttpServerTest {
 protected:
  LittleMemoryTest() : HttpServerTest(/*max_body_bytes=*/10'000) {}
};

TEST_F(LittleMemoryTest, ABodyBeyondTheMemoryLimitIsSkippedAndTheConnectionStaysOpen) {
  Start();
  Client client(*server_), holder(*server_);
  client.Send(PostOf(20'000));
  EXPECT_THAT(client.ReadUntil("}"), AllOf(HasSubstr("413 "), HasSubstr("10000 bytes")));
  holder.Send(PostOf(6000, "/wait"));
  const std::shared_ptr<Exchange> waiting = waiting_.get_future().get();
  client.Send(PostOf(6000));
  EXPECT_THAT(client.ReadUntil("}"), AllOf(HasSubstr("429 "), HasSubstr("try again later")));
  waiting->Answer({});
  EXPECT_THAT(holder.ReadUntil("\r\n\r\n"), HasSubstr("200 OK"));
  client.Send(PostOf(6000));
  EXPECT_THAT(client.ReadUntil(std::string(6000, 'x')), HasSubstr("200 OK"));
}

TEST_F(LittleMemoryTest, AnUnwantedBodyIsSkipped) {
  Start();
  Client client(*server_);
  for (const char* target : {"/long", "/nowhere"}) {
    client.Send(PostOf(20'000, target));
    EXPECT_THAT(client.ReadUntil("}"), HasSubstr(" 40"));
  }
}

TEST_F(HttpServerTest, AHeaderSentLineByLineHasTheSameLimit) {
  options_.max_header_bytes = 10'000;
  Start();
  Client client(*server_);
  // a header's value, then the next header's name
  const std::string line = ": " + std::string(95, 'a') + "\r\nA";
  client.Send("GET /echo HTTP/1.1\r\nHost: x\r\nA");
  std::string answer;
  for (int i = 0; i < 1000 && answer.empty(); ++i) {
    client.Send(line);
    answer = client.ReadWithin(milliseconds(5));
  }
  EXPECT_THAT(answer, AllOf(HasSubstr("431 "), HasSubstr("over 10000 bytes")));
}

// ab -k and old proxies wait for a closed connection unless the answer says otherwise.
TEST_F(HttpServerTest, AnswersToHttp10SayWhetherTheConnectionStaysOpen) {
  Start();
  const std::string kept = "GET /echo HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
  const std::string answers = Ask(kept + "GET /echo HTTP/1.0\r\n\r\n");
  const size_t second = answers.find("HTTP/1.1 200 ", 1);
  ASSERT_NE(second, std::string::npos) << answers;
  EXPECT_THAT(answers.substr(0, second), HasSubstr("\r\nConnection: keep-alive\r\n"));
  EXPECT_THAT(answers.substr(second), HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(Ask(Get("/echo") + "GET /echo HTTP/1.0\r\n\r\n"), Not(HasSubstr("keep-alive")));
}

TEST_F(HttpServerTest, TheLastCallerHeaderCountsAndTrailersAreIgnored) {
  options_.caller_header = "x-caller";
  Start();
  EXPECT_THAT(Ask(Get("/caller", std::string(kClose) + "X-Caller: eve\r\nx-caller: ann\r\n")),
              HasSubstr("<ann>"));
  const std::string answer =
      Ask(Post("/caller", std::string(kClose) + kChunked,
               "2\r\nhi\r\n0\r\nx-caller: eve\r\nContent-Encoding: gzip\r\n\r\n"));
  EXPECT_THAT(answer, AllOf(HasSubstr("\r\n\r\n<>"), Not(HasSubstr("gzip"))));
}

TEST_F(HttpServerTest, UnreadAnswersAreLimited) {
  Start();
  const std::string ask = Get("/large", kClose);
  Client lazy(*server_);
  lazy.Send(ask);
  EXPECT_THAT(lazy.ReadUntil("200 OK"), StartsWith("HTTP/1.1 200"));
  const std::string refused = Ask(ask);
  EXPECT_THAT(refused, AllOf(StartsWith("HTTP/1.1 429 "), HasSubstr("have not read")));
  EXPECT_GE(lazy.ReadAll().size(), kLarge - 4096);
  while (Ask(ask).find("HTTP/1.1 200 ") != 0) std::this_thread::yield();
  EXPECT_EQ(poller_.hosts().unread.bytes(), 0u);
}

TEST_F(HttpServerTest, AnAnswerBeyondTheUnreadLimitIsRefusedBeforeItIsWritten) {
  Start();
  Client client(*server_);
  const std::shared_ptr<Exchange> exchange = AskToWait(&client);
  const auto received = net::Budget::Clock::now();
  net::Budget& unread = poller_.hosts().unread;
  const std::shared_ptr<net::Host> host = poller_.hosts().Of("ipv4:127.0.0.1:1");
  const size_t others = unread.max_bytes_per_host() - 5000;
  ASSERT_TRUE(unread.Take(&host->unread, others));
  EXPECT_TRUE(exchange->CheckClientReads(received).ok());
  EXPECT_EQ(exchange->CountAnswer(6000).code, StatusCode::kResourceExhausted);
  EXPECT_EQ(exchange->CheckClientReads(received).code, StatusCode::kResourceExhausted);
  unread.Return(&host->unread, others);
  EXPECT_TRUE(exchange->CheckClientReads(received).ok());
  EXPECT_TRUE(exchange->CountAnswer(6000).ok());
  EXPECT_EQ(unread.bytes(), 6000u);
  exchange->Answer({});
  EXPECT_EQ(unread.bytes(), 0u);
}

TEST_F(HttpServerTest, ATargetMayBeAnAbsoluteUrl) {
  Start();
  Client client(*server_);
  client.Send(Post("http://server:8501/echo", LengthOf(2), "hi"));
  EXPECT_THAT(client.ReadUntil("POST hi"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, ASlowClientIsDisconnected) {
  options_.idle_timeout = options_.transfer_timeout = milliseconds(50);
  Start();
  for (const std::string& begun : {""s, "GET / HTT"s, Post("/echo", LengthOf(5), "ab")}) {
    EXPECT_EQ(Ask(begun), "");
  }
}

TEST_F(HttpServerTest, ABodyThatArrivesTooSlowlyIsRefused) {
  options_.body_grace = std::chrono::seconds(0);
  Start();
  EXPECT_THAT(Ask(Post("/echo", LengthOf(5), "ab")), StartsWith("HTTP/1.1 408 "));
}

class ShortMemoryTest : public HttpServerTest {
 protected:
  ShortMemoryTest() : HttpServerTest(/*max_body_bytes=*/100'000) {}
};

TEST_F(ShortMemoryTest, ASlowBodyIsRefusedWhileMemoryIsShort) {
  options_.body_time_where_short = std::chrono::seconds(0);
  Start();
  Client alone(*server_), holder(*server_);
  alone.Send(Post("/echo", LengthOf(20'000), std::string(10'000, 'x')));
  for (int i = 0; i < 100; ++i) standby_.LookNow();
  EXPECT_EQ(alone.ReadWithin(milliseconds(50)), "");
  holder.Send(Post("/echo", LengthOf(60'000), std::string(59'000, 'x')));
  EXPECT_THAT(holder.ReadAll(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, ChunksOfOneByteCountAsWastedTime) {
  Start();
  Client client(*server_);
  client.Send(Post("/echo", kChunked, ""));
  std::string chunks;
  for (int i = 0; i < 1000; ++i) chunks += "1\r\nx\r\n";
  const std::shared_ptr<net::Host> host = poller_.hosts().Of("ipv4:127.0.0.1:1");
  while (host->wasted.InThisSecond().count() == 0) ASSERT_TRUE(client.Send(chunks));
}

TEST_F(HttpServerTest, AClientThatReadsNothingIsDisconnectedWhileRoomForAnswersIsShort) {
  Start();
  constexpr size_t kOthers = 20 << 20;
  net::Budget& unread = poller_.hosts().unread;
  net::Budget::Account others;
  ASSERT_TRUE(unread.Take(&others, kOthers));
  Client lazy(*server_);
  lazy.Send(Get("/large"));
  lazy.ReadUntil("200 OK");
  ASSERT_TRUE(unread.is_short());
  while (unread.bytes() > kOthers) standby_.LookNow();
  unread.Return(&others, kOthers);
}

TEST_F(HttpServerTest, ARequestIsCancelledWhenItsClientHangsUp) {
  Start();
  Client client(*server_);
  const std::shared_ptr<Exchange> exchange = AskToWait(&client);
  EXPECT_FALSE(exchange->cancelled());
  client.Close();
  while (!exchange->cancelled()) std::this_thread::yield();
  exchange->Answer({});
}

TEST_F(HttpServerTest, RequestsInFlightAreAnsweredBeforeTheServerEnds) {
  Start();
  Client idle(*server_);
  Client client(*server_);
  std::shared_ptr<Exchange> exchange = AskToWait(&client);
  std::thread stopper([this] { server_->Shutdown(steady_clock::time_point::max()); });
  EXPECT_EQ(idle.ReadAll(), "");
  exchange->Answer(Of("at last"));
  EXPECT_THAT(client.ReadAll(), AllOf(HasSubstr("at last"), HasSubstr("Connection: close")));
  client.Close();
  exchange.reset();  // a connection lives as long as its exchange is held
  stopper.join();
}

TEST_F(HttpServerTest, RequestsInFlightAtTheDeadlineAreCutOff) {
  Start();
  Client never(*server_);
  never.Send(Post("/echo", "Expect: 100-continue\r\n" + LengthOf(2), ""));
  never.ReadUntil("100 Continue");
  server_->Shutdown(steady_clock::now() + milliseconds(10));
  EXPECT_THAT(never.ReadAll(), Not(HasSubstr("200 OK")));
}

// A connection may be accepted before the shutdown and begin afterwards.
TEST_F(HttpServerTest, AConnectionThatBeginsAfterShutdownIsClosed) {
  const Router router;
  const auto shared = std::make_shared<Shared>(options_, &router, &poller_);
  shared->connections.Enter(net::OpenConnections::Phase::kDraining);
  const auto ends = net::ConnectedSockets();
  const net::Socket client(ends[0], nullptr);
  Connection::Start(std::make_unique<net::Socket>(ends[1], nullptr), "unix:", shared);
  pollfd until_closed{ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&until_closed, 1, 20'000), 1);
}

TEST_F(HttpServerTest, ARequestWhoseBodyArrivesDuringShutdownIsAnswered) {
  Start();
  Client idle(*server_), client(*server_);
  client.Send(Post("/echo", "Expect: 100-continue\r\n" + LengthOf(2), ""));
  client.ReadUntil("100 Continue");
  std::thread stopper([this] { server_->Shutdown(steady_clock::time_point::max()); });
  idle.ReadAll();  // ends when the server has begun to stop
  client.Send("hi");
  EXPECT_THAT(client.ReadAll(), HasSubstr("POST hi"));
  client.Close();
  stopper.join();
}

TEST_F(HttpServerTest, ErrorsNameAnAddressInUse) {
  Start();
  const std::string address = server_->address();
  options_.port = std::stoi(address.substr(address.find(':') + 1));
  std::unique_ptr<HttpServer> second;
  const Status status = HttpServer::Start(options_, Router(), &poller_, &second);
  EXPECT_EQ(status.code, StatusCode::kUnavailable);
  EXPECT_THAT(status.message, HasSubstr(address));
}

}  // namespace
}  // namespace colcast::http
