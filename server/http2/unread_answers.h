// The bytes of answers that clients have not read yet, and a bound on them.
//
// A client need never make room for what it has asked for.
#ifndef COLCAST_SERVER_HTTP2_UNREAD_ANSWERS_H_
#define COLCAST_SERVER_HTTP2_UNREAD_ANSWERS_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "server/base/status.h"

namespace colcast::http2 {

// May be used on any thread.
class UnreadAnswers {
 public:
  // Answers up to this size are not counted: they take no more than their calls do.
  static constexpr size_t kSmallBytes = 4 << 10;

  explicit UnreadAnswers(size_t max_bytes_per_host) : max_bytes_(max_bytes_per_host) {}

  // Counts an answer until Remove(). RESOURCE_EXHAUSTED if that is more than a host may leave
  // unread; one answer may be of any size.
  Status Add(const std::string& host, size_t bytes);
  void Remove(const std::string& host, size_t bytes);

  // RESOURCE_EXHAUSTED if Add() has no room for any answer.
  Status Check(const std::string& host) const;
  // False if Check() is OK for every host.
  bool MayBeFull() const { return total_.load(std::memory_order_relaxed) >= max_bytes_; }

 private:
  size_t BytesOf(const std::string& host) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status TooMany(const std::string& host, size_t bytes) const;

  const size_t max_bytes_;
  std::atomic<size_t> total_{0};
  mutable std::mutex mutex_;
  std::unordered_map<std::string, size_t> bytes_
      ABSL_GUARDED_BY(mutex_);  // by host, without those that have none
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_UNREAD_ANSWERS_H_
