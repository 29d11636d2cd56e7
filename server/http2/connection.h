// A client's HTTP/2 connection: an nghttp2 session on a socket.
#ifndef COLCAST_SERVER_HTTP2_CONNECTION_H_
#define COLCAST_SERVER_HTTP2_CONNECTION_H_

#include <absl/base/thread_annotations.h>
#include <nghttp2/nghttp2.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http2/call.h"
#include "server/http2/transport.h"
#include "server/net/connection.h"
#include "server/net/poller.h"
#include "server/net/socket.h"

namespace colcast::http2 {

struct ConnectionOptions {
  size_t max_request_bytes = 256 << 20;   // as received
  uint32_t max_concurrent_streams = 100;  // further calls wait in the client
  uint32_t max_header_bytes = 8 << 10;    // per call
  double max_resets_per_second = 2000;    // also the size of a burst
  // The minimum interval between a client's pings. Two early pings are forgiven, and a client that
  // is receiving an answer may ping at any time.
  std::chrono::milliseconds min_ping_interval = std::chrono::seconds(5);
  // A client silent for this long is pinged, and closed if it does not answer in time.
  std::chrono::milliseconds keepalive_time = std::chrono::hours(2);
  std::chrono::milliseconds keepalive_timeout = std::chrono::seconds(20);
  // A connection accepts no more calls once it has been without calls for max_idle or has reached
  // max_age. It is closed max_age_grace after max_age.
  std::chrono::milliseconds max_idle = std::chrono::milliseconds::max();
  std::chrono::milliseconds max_age = std::chrono::milliseconds::max();
  std::chrono::milliseconds max_age_grace = std::chrono::milliseconds::max();
};

// State shared by all connections of a server.
struct Shared {
  Shared(const ConnectionOptions& options, Methods methods, net::Poller* poller)
      : options(options), methods(std::move(methods)), poller(poller) {}

  const ConnectionOptions options;
  const Methods methods;
  net::Poller* const poller;  // must outlive every connection
  net::OpenConnections connections;
  std::atomic<int> calls{0};  // calls on all connections
};

class Connection final : public net::Connection {
 public:
  // Serves the socket from now on, or closes it if the server's phase requires it.
  static void Start(std::unique_ptr<net::Socket> socket, std::string peer,
                    std::shared_ptr<Shared> shared);
  Shared& shared() const { return *shared_; }

  // Stops accepting calls, ends streams, and closes after the current calls have ended. Like the
  // methods below, may be called on any thread.
  void Drain() { Do(kDrain); }
  // Closes a draining connection without waiting for the client to confirm.
  void DrainAtOnce() { Do(kDrainAtOnce); }

  // Used by calls. Answer() is for a handled call; AnswerSoon() is for a stream, which the thread
  // that owns the connection may be opening right now.
  void Answer(Call* call, std::optional<Message> message, Status status);
  void AnswerSoon(Call* call, std::optional<Message> message, std::optional<Status> status);

  Connection(std::unique_ptr<net::Socket> socket, std::string peer, std::shared_ptr<Shared> shared);

 private:
  using Clock = scheduling::Clock;
  struct Callbacks;
  enum OwnWork : unsigned { kAnswers = kOwn, kDrain = 2 * kOwn, kDrainAtOnce = 4 * kOwn };
  // kNew lasts until the client's settings arrive. In kDraining the client was told to open no more
  // calls; kDrained accepts none. kFailed closes at the next tick, because closing immediately
  // would let the client reconnect in a loop.
  enum class Phase { kNew, kOpen, kDraining, kDrained, kFailed, kClosed };

  nghttp2_session* session() { return transport_.session(); }
  std::shared_ptr<Connection> Self() {
    return std::static_pointer_cast<Connection>(shared_from_this());
  }
  bool BeginSession();
  bool is_open() const { return phase_ < Phase::kFailed; }
  void DoNow(unsigned work) override;
  void Read();
  void Write();
  void Close() override;
  bool IsIdle() const override;

  // Answers.
  void SendAnswers();
  void SendAnswer(Call* call);
  void SendHeaders(Call* call);
  void SendOnlyTrailers(Call* call, const Status& status);
  void SendHttpError(Call* call, const std::string& code);
  static ssize_t ReadAnswer(nghttp2_session* session, int32_t id, uint8_t* out, size_t size,
                            uint32_t* flags, nghttp2_data_source* source, void* user_data);
  ssize_t CopyAnswer(Call* call, uint8_t* out, size_t size, uint32_t* flags);

  // Timers, in connection_time.cc.
  void OnTimer();
  bool HoldsUnread() const;
  void EndLateCalls(Clock::time_point now);
  void KeepAlive(Clock::time_point now);
  void BeginDrain();
  void EndDrain();
  void EndStreams();
  void CutStreams();

  // Handlers of nghttp2's events, in connection_calls.cc.
  static const nghttp2_session_callbacks* AllCallbacks();
  int BeginHeaders(const nghttp2_frame& frame);
  int Data(Call* call, const uint8_t* data, size_t size);
  int FrameReceived(const nghttp2_frame& frame);
  int FrameSent(const nghttp2_frame& frame);
  void CountReset(uint32_t error);
  int CallClosed(Call* call);

  void HeadersReceived(Call* call);
  void Ended(Call* call);
  void Refuse(Call* call, Status status);
  void PingReceived(const nghttp2_frame& frame);
  void FrameBegun(const nghttp2_frame_hd& header);
  // Ends the connection with a reason that clients recognize.
  void EndAbuse(std::string_view reason);

  const std::shared_ptr<Shared> shared_;
  // Counts the connection as open until its last call has released it.
  const net::OpenConnections::Place place_ = shared_->connections.Add();

  std::mutex answers_mutex_;
  std::vector<Call*> answers_ ABSL_GUARDED_BY(answers_mutex_);

  // Used only by the owning thread.
  Transport transport_;
  Phase phase_ = Phase::kNew;
  std::vector<Call*> calls_;
  std::vector<Call*> answering_;
  bool to_end_ = false;  // the peer has closed; no further event will announce it
  // Consecutive frames with neither request data nor an answer. Permitted pings do not count.
  int idle_frames_ = 0;
  int resets_ = 0;                // streams reset because of client errors since the last tick
  int ticks_without_answer_ = 0;  // since answer bytes were last sent
  int ping_strikes_ = 0;
  bool heard_ = true;  // data was received since the last tick
  bool had_calls_ = true;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point last_ping_;
  Clock::time_point last_heard_ = began_;
  Clock::time_point last_call_ = began_;
  std::optional<Clock::time_point> pinged_;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_CONNECTION_H_
