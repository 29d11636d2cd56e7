#include "server/http2/unread_answers.h"

namespace colcast::http2 {

Status UnreadAnswers::Add(const std::string& host, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t before = BytesOf(host);
  if (before > 0 && before + bytes > max_bytes_) return TooMany(host, before);
  bytes_[host] = before + bytes;
  total_.fetch_add(bytes, std::memory_order_relaxed);
  return OkStatus();
}

void UnreadAnswers::Remove(const std::string& host, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto place = bytes_.find(host);
  place->second -= bytes;
  if (place->second == 0) bytes_.erase(place);
  total_.fetch_sub(bytes, std::memory_order_relaxed);
}

Status UnreadAnswers::Check(const std::string& host) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t bytes = BytesOf(host);
  return bytes < max_bytes_ ? OkStatus() : TooMany(host, bytes);
}

size_t UnreadAnswers::BytesOf(const std::string& host) const {
  const auto place = bytes_.find(host);
  return place == bytes_.end() ? 0 : place->second;
}

Status UnreadAnswers::TooMany(const std::string& host, size_t bytes) const {
  return ResourceExhausted("clients at ", host, " have not read ", bytes,
                           " bytes of answers to earlier requests; at most ", max_bytes_,
                           " may wait (--max_unread_response_bytes)");
}

}  // namespace colcast::http2
