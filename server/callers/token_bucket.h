// Tokens that fill up at a steady rate, to a limit, and are taken. No clock: the caller has it.
#ifndef COLCAST_SERVER_CALLERS_TOKEN_BUCKET_H_
#define COLCAST_SERVER_CALLERS_TOKEN_BUCKET_H_

#include <algorithm>
#include <chrono>

namespace colcast::callers {

class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // Full at first. Both over 0.
  TokenBucket(double per_second, double most, Time now)
      : per_second_(per_second), most_(most), tokens_(most), since_(now) {}

  // From now on; what it has stays, up to the limit.
  void SetRate(double per_second, double most, Time now) {
    tokens_ = std::min(At(now), most);
    per_second_ = per_second;
    most_ = most;
    since_ = now;
  }

  double At(Time now) const {
    const std::chrono::duration<double> passed = now - since_;
    return std::min(most_, tokens_ + per_second_ * passed.count());
  }

  // False if there are not so many: then none are taken.
  bool Take(double count, Time now) {
    const double tokens = At(now);
    if (count > tokens) return false;
    tokens_ = tokens - count;
    since_ = now;
    return true;
  }

  // Until there are so many, if nothing is taken meanwhile. Requires count <= the limit.
  std::chrono::duration<double> TimeUntil(double count, Time now) const {
    return std::chrono::duration<double>(std::max(0.0, count - At(now)) / per_second_);
  }

  bool IsFull(Time now) const { return At(now) >= most_; }

 private:
  double per_second_;
  double most_;
  double tokens_;
  Time since_;
};

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_TOKEN_BUCKET_H_
