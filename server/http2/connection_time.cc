// The part of Connection that handles timeouts and shutdown.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "server/http2/connection.h"

namespace colcast::http2 {
namespace {

constexpr std::chrono::seconds kMaxHandshake(20);
constexpr uint8_t kDrainPing[8] = {'d', 'r', 'a', 'i', 'n', 0, 0, 0};

bool HasPassed(scheduling::Clock::duration time, std::chrono::milliseconds limit) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time) >= limit;
}

}  // namespace

void Connection::OnTimer() {
  constexpr int kMaxTicksWithoutReading = 5;
  const ConnectionOptions& options = shared_->options;
  const Clock::time_point now = Clock::now();
  if (heard_) last_heard_ = now;
  if (had_calls_ || !calls_.empty()) last_call_ = now;
  heard_ = had_calls_ = false;
  resets_ = 0;
  if (phase_ == Phase::kNew && HasPassed(now - began_, kMaxHandshake)) return Close();
  const bool reads_nothing = ++ticks_without_answer_ > kMaxTicksWithoutReading;
  if (reads_nothing && poller().hosts().unread.is_short() && HoldsUnread()) return Close();
  EndLateCalls(now);
  KeepAlive(now);
  if (HasPassed(now - last_call_, options.max_idle) || HasPassed(now - began_, options.max_age)) {
    BeginDrain();
  }
  const bool over = options.max_age_grace != std::chrono::milliseconds::max() &&
                    options.max_age != std::chrono::milliseconds::max() &&
                    HasPassed(now - began_, options.max_age + options.max_age_grace);
  if (over) Close();
}

bool Connection::HoldsUnread() const {
  return std::any_of(calls_.begin(), calls_.end(), [](const Call* call) {
    return call->unread_.bytes() > 0 && call->has_headers_sent_;
  });
}

// Does not end unary calls that have been received: their handlers check the deadline.
void Connection::EndLateCalls(Clock::time_point now) {
  for (Call* call : calls_) {
    if (call->deadline_ > now) continue;
    if (call->stream_) {
      call->Finish(DeadlineExceeded("the call's deadline has passed"));
    } else if (!call->has_ended_) {
      nghttp2_submit_rst_stream(session(), NGHTTP2_FLAG_NONE, call->id_, NGHTTP2_CANCEL);
    }
  }
}

void Connection::KeepAlive(Clock::time_point now) {
  if (pinged_ && last_heard_ >= *pinged_) pinged_.reset();
  if (pinged_ && HasPassed(now - *pinged_, shared_->options.keepalive_timeout)) return Close();
  if (!pinged_ && HasPassed(now - last_heard_, shared_->options.keepalive_time)) {
    nghttp2_submit_ping(session(), NGHTTP2_FLAG_NONE, nullptr);
    pinged_ = now;
  }
}

// Pings the client after the notice, because the client's answer follows every call that it opened
// before it read the notice.
void Connection::BeginDrain() {
  if (phase_ >= Phase::kDraining) return;
  phase_ = Phase::kDraining;
  nghttp2_submit_shutdown_notice(session());
  nghttp2_submit_ping(session(), NGHTTP2_FLAG_NONE, kDrainPing);
}

void Connection::EndStreams() {
  for (Call* call : calls_) {
    if (call->stream_) call->Finish(Error(StatusCode::kCancelled, "the server is shutting down"));
  }
}

// Also ends streams whose clients do not read.
void Connection::CutStreams() {
  for (Call* call : calls_) {
    if (!call->stream_) continue;
    nghttp2_submit_rst_stream(session(), NGHTTP2_FLAG_NONE, call->id_, NGHTTP2_CANCEL);
  }
}

// Accepts no more calls; calls in flight are still answered.
void Connection::EndDrain() {
  if (phase_ >= Phase::kDrained) return;
  phase_ = Phase::kDrained;
  nghttp2_submit_goaway(session(), NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session()), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

void Connection::PingReceived(const nghttp2_frame& frame) {
  if ((frame.hd.flags & NGHTTP2_FLAG_ACK) != 0) {
    const bool drains = std::memcmp(frame.ping.opaque_data, kDrainPing, sizeof(kDrainPing)) == 0;
    if (phase_ == Phase::kDraining && drains) EndDrain();
    if (pinged_) idle_frames_ = 0;
    pinged_.reset();
    return;
  }
  constexpr int kMaxStrikes = 2;
  const Clock::time_point now = Clock::now();
  const bool is_early = !HasPassed(now - last_ping_, shared_->options.min_ping_interval);
  last_ping_ = now;
  ping_strikes_ = is_early ? ping_strikes_ + 1 : 0;
  if (!is_early && idle_frames_ > 0) --idle_frames_;  // so a client may wait days for an answer
  if (ping_strikes_ <= kMaxStrikes) return;
  EndAbuse("too_many_pings");  // gRPC clients recognize this reason
}

void Connection::EndAbuse(std::string_view reason) {
  if (!is_open()) return;
  phase_ = Phase::kFailed;
  nghttp2_submit_goaway(
      session(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session()),
      NGHTTP2_ENHANCE_YOUR_CALM, reinterpret_cast<const uint8_t*>(reason.data()), reason.size());
}

}  // namespace colcast::http2
