#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "server/http1/server.h"
#include "server/net/testing.h"
#include "server/wire/inflater_testing.h"

namespace colcast::http {
namespace {

using namespace std::string_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

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

// Answers /echo with the request's body, /long with 100,000 bytes, and /later on another thread;
// leaves /wait unanswered.
class HttpServerTest : public testing::Test {
 protected:
  explicit HttpServerTest(size_t max_body_bytes = size_t{2} << 30)
      : poller_(32 << 20, max_body_bytes) {}

  void Start(HttpServer::Options options = {}) {
    options.host = "127.0.0.1";
    Router router;
    router.AddPage("/long", [] {
      Response response;
      response.body = std::string(100'000, 'x');
      return response;
    });
    router.AddTree("/large", [](std::shared_ptr<Exchange> exchange) {
      Response response;
      response.body = std::string(kLarge, 'x');
      exchange->Answer(std::move(response));
    });
    router.AddTree("/caller", [](std::shared_ptr<Exchange> exchange) {
      Response response;
      const Request& request = exchange->request();
      response.body = '<' + request.caller + '>' + (request.gzip ? " gzip" : "");
      exchange->Answer(std::move(response));
    });
    router.AddTree("/echo", [](std::shared_ptr<Exchange> exchange) {
      Response response;
      response.body =
          exchange->request().method + ' ' + exchange->request().body.bytes().ToString();
      exchange->Answer(std::move(response));
    });
    router.AddTree("/later", [](std::shared_ptr<Exchange> exchange) {
      std::thread([exchange = std::move(exchange)] { exchange->Answer({}); }).detach();
    });
    router.AddTree("/wait", [this](std::shared_ptr<Exchange> exchange) {
      waiting_.set_value(std::move(exchange));
    });
    const Status status = HttpServer::Start(options, std::move(router), &poller_, &server_);
    ASSERT_TRUE(status.ok()) << status.message;
  }

  std::string Ask(const std::string& request) {
    Client client(*server_);
    client.Send(request);
    return client.ReadAll();
  }

  net::Poller poller_;
  net::Standby standby_{&poller_};
  net::PollingThread thread_{&poller_};
  std::promise<std::shared_ptr<Exchange>> waiting_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, OneConnectionServesRequestAfterRequest) {
  Start();
  Client client(*server_);
  for (const std::string body : {"one", "two", "three"}) {
    client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
    const std::string answer = client.ReadUntil(body);
    EXPECT_NE(answer.find("HTTP/1.1 200 OK\r\n"), std::string::npos) << answer;
    EXPECT_NE(answer.find("\r\n\r\nPOST " + body), std::string::npos) << answer;
  }
}

TEST_F(HttpServerTest, PipelinedAndChunkedRequestsAreRead) {
  Start();
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  const std::string last = "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const std::string answer = Ask(chunked + last);
  EXPECT_NE(answer.find("POST abcde"), std::string::npos) << answer;
  EXPECT_NE(answer.find("GET "), std::string::npos) << answer;
}

TEST_F(HttpServerTest, ClientsAreAnsweredInTheirOrderHoweverManyThreadsPoll) {
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
        client.Send(
            "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /long HTTP/1.1\r\nHost: x\r\n\r\n"
            "GET /later HTTP/1.1\r\nHost: x\r\n\r\nPOST /echo HTTP/1.1\r\nHost: "
            "x\r\nContent-Length: 4\r\n\r\nlast");
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

TEST_F(HttpServerTest, AClientThatExpectsToBeAskedIsAsked) {
  Start();
  Client client(*server_);
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("hi");
  EXPECT_NE(client.ReadUntil("POST hi").find("200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, HeadIsAnsweredWithoutABody) {
  Start();
  const std::string answer = Ask("HEAD /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 100000\r\n"), std::string::npos) << answer;
  EXPECT_EQ(answer.find('x', answer.find("\r\n\r\n")), std::string::npos);
}

TEST_F(HttpServerTest, LargeAnswersAreCompressedForThoseWhoAsk) {
  Start();
  const std::string ask = "GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
  const std::string answer = Ask(ask + "Accept-Encoding: gzip\r\n\r\n");
  EXPECT_NE(answer.find("Content-Encoding: gzip\r\n"), std::string::npos);
  std::string body;
  ASSERT_TRUE(InflateAll(answer.substr(answer.find("\r\n\r\n") + 4), Inflater::Format::kGzip,
                         1 << 20, &body)
                  .ok());
  EXPECT_EQ(body, std::string(100'000, 'x'));
  EXPECT_EQ(Ask(ask + "\r\n").find("Content-Encoding"), std::string::npos);
}

TEST_F(HttpServerTest, UnknownPathsAndMethodsOfPagesAreRefused) {
  Start();
  const std::string close = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  EXPECT_NE(Ask("GET /nowhere" + close).find("404 Not Found"), std::string::npos);
  EXPECT_NE(Ask("DELETE /long" + close).find("405 Method Not Allowed"), std::string::npos);
}

TEST_F(HttpServerTest, BytesThatAreNotHttpAreRefused) {
  Start();
  for (const char* bad :
       {"hello\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
    const std::string answer = Ask(bad);
    EXPECT_NE(answer.find("400 Bad Request"), std::string::npos) << bad << answer;
    EXPECT_NE(answer.find("{ \"error\": \"malformed HTTP: "), std::string::npos) << answer;
  }
}

class LittleMemoryTest : public HttpServerTest {
 protected:
  LittleMemoryTest() : HttpServerTest(/*max_body_bytes=*/10'000) {}
};

TEST_F(LittleMemoryTest, ABodyThatFindsNoMemoryIsPassedOverAndTheConnectionGoesOn) {
  Start();
  const auto post = [](size_t size) {
    return "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(size) +
           "\r\n\r\n" + std::string(size, 'x');
  };
  Client client(*server_);
  client.Send(post(20'000));
  const std::string alone = client.ReadUntil("}");
  EXPECT_NE(alone.find("413 "), std::string::npos) << alone;
  EXPECT_NE(alone.find("10000 bytes"), std::string::npos) << alone;
  Client holder(*server_);
  holder.Send("POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 6000\r\n\r\n" +
              std::string(6000, 'x'));
  const std::shared_ptr<Exchange> waiting = waiting_.get_future().get();
  client.Send(post(6000));
  const std::string beside = client.ReadUntil("}");
  EXPECT_NE(beside.find("429 "), std::string::npos) << beside;
  EXPECT_NE(beside.find("try again later"), std::string::npos) << beside;
  waiting->Answer({});
  EXPECT_NE(holder.ReadUntil("\r\n\r\n").find("200 OK"), std::string::npos);
  client.Send(post(6000));
  EXPECT_NE(client.ReadUntil(std::string(6000, 'x')).find("200 OK"), std::string::npos);
}

TEST_F(LittleMemoryTest, ABodyThatNobodyWantsIsPassedOver) {
  Start();
  Client client(*server_);
  for (const char* target : {"/long", "/nowhere"}) {
    client.Send("POST " + std::string(target) +
                " HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n" + std::string(20'000, 'x'));
    const std::string answer = client.ReadUntil("}");
    EXPECT_NE(answer.find(" 40"), std::string::npos) << answer;
  }
}

TEST_F(HttpServerTest, HeadersAndBodiesHaveALimit) {
  HttpServer::Options options;
  options.max_header_bytes = 1000;
  options.max_body_bytes = 10;
  Start(options);
  const std::string header =
      Ask("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(2000, 'a') + "\r\n\r\n");
  EXPECT_NE(header.find("431 "), std::string::npos) << header;
  const std::string announced = Ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n");
  EXPECT_NE(announced.find("413 "), std::string::npos) << announced;
  EXPECT_NE(announced.find("over 10 bytes"), std::string::npos) << announced;
  const std::string chunked =
      Ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
          "chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n");
  EXPECT_NE(chunked.find("413 "), std::string::npos) << chunked;
}

TEST_F(HttpServerTest, AHeaderThatComesLineByLineHasTheSameLimit) {
  HttpServer::Options options;
  options.max_header_bytes = 10'000;
  Start(options);
  Client client(*server_);
  // a header's value, then the next header's name
  const std::string line = ": " + std::string(95, 'a') + "\r\nA";
  client.Send("GET /echo HTTP/1.1\r\nHost: x\r\nA");
  std::string answer;
  for (int i = 0; i < 1000 && answer.empty(); ++i) {
    client.Send(line);
    answer = client.ReadWithin(milliseconds(5));
  }
  EXPECT_NE(answer.find("431 "), std::string::npos) << answer;
  EXPECT_NE(answer.find("over 10000 bytes"), std::string::npos) << answer;
}

TEST_F(HttpServerTest, ChunkExtensionsAndTrailersHaveALimit) {
  Start();
  const std::string post = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string small = "2;a=\"b\"\r\nhi\r\n0\r\nX: y\r\n\r\n";
  std::string trailers;
  for (int i = 0; i < 20'000; ++i) trailers += "X: y\r\n";
  for (const std::string& body : {"2;" + std::string(100'000, 'a') + "\r\nhi\r\n0\r\n\r\n",
                                  "2\r\nhi\r\n0;" + std::string(100'000, 'a') + "\r\n\r\n",
                                  "2\r\nhi\r\n0\r\n" + trailers + "\r\n"}) {
    const std::string answer = Ask(post + body);
    EXPECT_NE(answer.find("431 "), std::string::npos) << answer;
    EXPECT_NE(answer.find("over 65536 bytes"), std::string::npos) << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  }
  Client client(*server_);
  client.Send(post + small);
  EXPECT_NE(client.ReadUntil("POST hi").find("200 OK"), std::string::npos);
  Client goes_on(*server_);
  EXPECT_TRUE(goes_on.Send(post + "2;" + std::string(8 << 20, 'a'))) << "it was reset";
  EXPECT_NE(goes_on.ReadAll().find("431 "), std::string::npos);
}

TEST_F(HttpServerTest, ABodyInAnotherCodingIsNoNextRequest) {
  Start();
  const struct {
    const char* headers;
    const char* code;
  } kCases[] = {
      {"HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n", "400 "},
      {"HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n", "400 "},
      {"HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
       "400 "},
      {"HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n", "400 "},
      {"HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked;q=1\r\n", "400 "},
      {"HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", "400 "},
      {"HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n", "501 "},
  };
  for (const auto& [headers, code] : kCases) {
    const std::string answer = Ask("POST /echo " + std::string(headers) +
                                   "\r\nGET /echo/next HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(answer.find(std::string("HTTP/1.1 ") + code), 0u) << headers << answer;
    EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << "the body was answered: " << answer;
  }
}

TEST_F(HttpServerTest, RequestsThatProxiesMayReadDifferentlyAreRefused) {
  Start();
  const std::string post = "POST /echo HTTP/1.1\r\n";
  for (const char* headers :
       {"Content-Length: 2\r\n", "Host: x\r\nHost: y\r\nContent-Length: 2\r\n",
        "Host: x\r\nContent-Length: 2, 2\r\n",
        "Host: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n",
        "Host: x\r\nA: b\r\n c\r\nContent-Length: 2\r\n",
        "Host: x\r\nA: b\r\n\tContent-Length: 7\r\nContent-Length: 2\r\n"}) {
    EXPECT_EQ(Ask(post + headers + "\r\nhi").find("HTTP/1.1 400 "), 0u) << headers;
  }
  const std::string body = "{\n  \"a\": 1\n}";  // lines of a body, not headers
  EXPECT_NE(Ask(post + "Host: x\r\nConnection: close\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body)
                .find("HTTP/1.1 200 "),
            std::string::npos);
  EXPECT_EQ(Ask("GET /echo HTTP/1.0\r\n\r\n").find("HTTP/1.1 200 "), 0u);
}

TEST_F(HttpServerTest, AChunksExtensionHasNoControlCharacters) {
  Start();
  const auto send = [this](const std::string& extension) {
    return Ask(
        "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        "Transfer-Encoding: chunked\r\n\r\n2;" +
        extension + "\r\nhi\r\n0\r\n\r\n");
  };
  EXPECT_EQ(send("a=\"b c\t\"").find("HTTP/1.1 200 "), 0u);
  for (const std::string& extension : {"a=\"\n\""s, "a=\"b\0\""s, "a=\"\x7f\""s}) {
    EXPECT_EQ(send(extension).find("HTTP/1.1 400 "), 0u) << extension;
  }
}

// ab -k and old proxies wait for a closed connection unless the answer says otherwise.
TEST_F(HttpServerTest, AnswersToHttp10SayThatTheConnectionStaysOpen) {
  Start();
  const std::string kept = "GET /echo HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
  const std::string answers = Ask(kept + "GET /echo HTTP/1.0\r\n\r\n");
  const size_t second = answers.find("HTTP/1.1 200 ", 1);
  ASSERT_NE(second, std::string::npos) << answers;
  EXPECT_NE(answers.substr(0, second).find("\r\nConnection: keep-alive\r\n"), std::string::npos);
  EXPECT_NE(answers.substr(second).find("\r\nConnection: close\r\n"), std::string::npos);
  const std::string newer = Ask("GET /echo HTTP/1.1\r\nHost: x\r\n\r\nGET /echo HTTP/1.0\r\n\r\n");
  EXPECT_EQ(newer.find("keep-alive"), std::string::npos) << newer;
}

TEST_F(HttpServerTest, TrailersAreNoHeaders) {
  HttpServer::Options options;
  options.names.header = "x-caller";
  Start(options);
  const std::string answer = Ask(
      "POST /caller HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nhi\r\n0\r\nx-caller: eve\r\nContent-Encoding: gzip\r\n\r\n");
  EXPECT_NE(answer.find("\r\n\r\n<>"), std::string::npos) << answer;
  EXPECT_EQ(answer.find("gzip"), std::string::npos) << answer;
}

TEST_F(HttpServerTest, TheLastCallerHeaderIsTheNearestProxys) {
  HttpServer::Options options;
  options.names.header = "x-caller";
  Start(options);
  EXPECT_NE(Ask("GET /caller HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Caller: eve\r\n"
                "x-caller: ann\r\n\r\n")
                .find("<ann>"),
            std::string::npos);
}

TEST_F(HttpServerTest, AnswersThatNobodyReadsAreBounded) {
  Start();
  const std::string ask = "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  Client lazy(*server_);
  lazy.Send(ask);
  EXPECT_EQ(lazy.ReadUntil("200 OK").find("HTTP/1.1 200"), 0u);
  const std::string refused = Ask(ask);
  EXPECT_EQ(refused.find("HTTP/1.1 429 "), 0u) << refused.substr(0, 200);
  EXPECT_NE(refused.find("have not read"), std::string::npos);
  EXPECT_GE(lazy.ReadAll().size(), kLarge - 4096);
  while (Ask(ask).find("HTTP/1.1 200 ") != 0) std::this_thread::yield();
  EXPECT_EQ(poller_.hosts().unread.bytes(), 0u);
}

TEST_F(HttpServerTest, AnAnswerWithoutRoomIsRefusedBeforeItIsWritten) {
  Start();
  Client client(*server_);
  client.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<Exchange> exchange = waiting_.get_future().get();
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

TEST_F(HttpServerTest, AConnectionWithoutACallIsClosedIfThereAreTooMany) {
  HttpServer::Options options;
  options.max_connections = 2;
  Start(options);
  Client settled(*server_);
  settled.Send("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(settled.ReadUntil("GET ").find("200 OK"), std::string::npos);
  Client newcomer(*server_);
  newcomer.Send("GET /echo HTTP/1.1\r\nHo");
  EXPECT_EQ(newcomer.ReadWithin(milliseconds(50)), "");
  const std::string ask = "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  while (Ask(ask).find("HTTP/1.1 200 ") != 0) std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(newcomer.ReadAll(), "");
  settled.Send("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(settled.ReadUntil("GET ").find("200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, ATargetMayNameTheHost) {
  Start();
  Client client(*server_);
  client.Send("POST http://server:8501/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_NE(client.ReadUntil("POST hi").find("200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, ASlowClientIsLetGo) {
  HttpServer::Options options;
  options.idle_timeout = options.transfer_timeout = milliseconds(50);
  Start(options);
  EXPECT_EQ(Ask(""), "");
  EXPECT_EQ(Ask("GET / HTT"), "");
  EXPECT_EQ(Ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"), "");
}

TEST_F(HttpServerTest, ABodyThatComesTooSlowlyIsRefused) {
  HttpServer::Options options;
  options.body_grace = std::chrono::seconds(0);
  Start(options);
  const std::string answer = Ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_EQ(answer.find("HTTP/1.1 408 "), 0u) << answer;
}

class ShortMemoryTest : public HttpServerTest {
 protected:
  ShortMemoryTest() : HttpServerTest(/*max_body_bytes=*/100'000) {}
};

TEST_F(ShortMemoryTest, ASlowBodyIsRefusedWhileMemoryIsShort) {
  HttpServer::Options options;
  options.body_time_where_short = std::chrono::seconds(0);
  Start(options);
  Client alone(*server_), holder(*server_);
  alone.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n" +
             std::string(10'000, 'x'));
  for (int i = 0; i < 100; ++i) standby_.LookNow();
  EXPECT_EQ(alone.ReadWithin(milliseconds(50)), "");
  holder.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" +
              std::string(59'000, 'x'));
  EXPECT_EQ(holder.ReadAll().find("HTTP/1.1 408 "), 0u);
}

TEST_F(HttpServerTest, ChunksOfOneByteWasteTime) {
  Start();
  Client client(*server_);
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::string chunks;
  for (int i = 0; i < 1000; ++i) chunks += "1\r\nx\r\n";
  const std::shared_ptr<net::Host> host = poller_.hosts().Of("ipv4:127.0.0.1:1");
  while (host->wasted.InThisSecond().count() == 0) ASSERT_TRUE(client.Send(chunks));
}

TEST_F(HttpServerTest, AClientThatReadsNothingIsClosedWhileRoomForAnswersIsShort) {
  Start();
  constexpr size_t kOthers = 20 << 20;
  net::Budget& unread = poller_.hosts().unread;
  net::Budget::Account others;
  ASSERT_TRUE(unread.Take(&others, kOthers));
  Client lazy(*server_);
  lazy.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  lazy.ReadUntil("200 OK");
  ASSERT_TRUE(unread.is_short());
  while (unread.bytes() > kOthers) standby_.LookNow();
  unread.Return(&others, kOthers);
}

TEST_F(HttpServerTest, OneConnectionTooManyIsTurnedAway) {
  HttpServer::Options options;
  options.max_connections = 1;
  Start(options);
  Client first(*server_);
  first.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<Exchange> exchange = waiting_.get_future().get();  // an idle one could go
  Client second(*server_);
  EXPECT_NE(second.ReadAll().find("503 Service Unavailable"), std::string::npos);
  exchange->Answer({});
}

TEST_F(HttpServerTest, AClientThatHungUpIsNoticed) {
  Start();
  Client client(*server_);
  client.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<Exchange> exchange = waiting_.get_future().get();
  EXPECT_FALSE(exchange->cancelled());
  client.Close();
  while (!exchange->cancelled()) std::this_thread::yield();
  exchange->Answer({});
}

TEST_F(HttpServerTest, RequestsInFlightAreAnsweredBeforeTheServerEnds) {
  Start();
  Client idle(*server_);
  Client client(*server_);
  client.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  std::shared_ptr<Exchange> exchange = waiting_.get_future().get();
  std::thread stopper([this] { server_->Shutdown(steady_clock::time_point::max()); });
  EXPECT_EQ(idle.ReadAll(), "");
  Response response;
  response.body = "at last";
  exchange->Answer(std::move(response));
  const std::string answer = client.ReadAll();
  EXPECT_NE(answer.find("at last"), std::string::npos) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  client.Close();
  exchange.reset();  // a connection lives as long as its exchange is held
  stopper.join();
}

// A handler may own the threads that answer, so none of them may destroy it.
TEST_F(HttpServerTest, HandlersEndWithTheServerAndNotWithItsLastConnection) {
  const auto owned = std::make_shared<int>();
  Router router;
  router.AddTree("/", [owned](const std::shared_ptr<Exchange>&) {});
  HttpServer::Options options;
  options.host = "127.0.0.1";
  ASSERT_TRUE(HttpServer::Start(options, std::move(router), &poller_, &server_).ok());
  const net::Accept accept = server_->accept();  // keeps the connections' shared state alive
  server_.reset();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_F(HttpServerTest, RequestsInFlightAtTheDeadlineAreCut) {
  Start();
  Client never(*server_);
  never.Send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  never.ReadUntil("100 Continue");
  server_->Shutdown(steady_clock::now() + milliseconds(10));
  EXPECT_EQ(never.ReadAll().find("200 OK"), std::string::npos);
}

// As one is that is accepted before the server ends, and begins afterwards.
TEST_F(HttpServerTest, AConnectionThatBeginsAfterTheEndIsClosed) {
  Start();
  const net::Accept accept = server_->accept();
  server_->Shutdown(steady_clock::time_point::max());
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const net::Socket client(ends[0], nullptr);
  accept(std::make_unique<net::Socket>(ends[1], nullptr), "unix:");
  pollfd until_closed{ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&until_closed, 1, 20'000), 1);
}

TEST_F(HttpServerTest, ABodyThatComesDuringTheDrainIsAnswered) {
  Start();
  Client idle(*server_), client(*server_);
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  client.ReadUntil("100 Continue");
  std::thread stopper([this] { server_->Shutdown(steady_clock::time_point::max()); });
  idle.ReadAll();  // ends when the server has begun to stop
  client.Send("hi");
  EXPECT_NE(client.ReadAll().find("POST hi"), std::string::npos);
  client.Close();
  stopper.join();
}

TEST_F(HttpServerTest, APortInUseIsNamed) {
  Start();
  HttpServer::Options options;
  options.host = "127.0.0.1";
  const std::string address = server_->address();
  options.port = std::stoi(address.substr(address.find(':') + 1));
  std::unique_ptr<HttpServer> second;
  const Status status = HttpServer::Start(options, Router(), &poller_, &second);
  EXPECT_EQ(status.code, StatusCode::kUnavailable);
  EXPECT_NE(status.message.find(address), std::string::npos) << status.message;
}

}  // namespace
}  // namespace colcast::http
