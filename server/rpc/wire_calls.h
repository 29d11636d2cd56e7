// Calls that run a model, from the received gRPC bytes to the bytes sent.
#ifndef COLCAST_SERVER_RPC_WIRE_CALLS_H_
#define COLCAST_SERVER_RPC_WIRE_CALLS_H_

#include <absl/base/thread_annotations.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "server/backend.h"
#include "server/http2/call.h"
#include "server/wire/predict_request.h"

namespace colcast::rpc {

// The methods that run a model: Predict, Classify, Regress and MultiInference of TensorFlow
// Serving, and the Open Inference Protocol's ModelInfer. They queue calls for a worker. `backend`
// must outlive them.
http2::Methods ModelCalls(const Backend& backend);

// Decoded requests kept for reuse, so that decoding does not allocate. They move between threads:
// the thread that reads calls fills requests that workers have returned.
//
// All methods may be called from any thread.
class SpareRequests {
 public:
  // The most memory, besides its message, that a spare or a waiting decoded request may take.
  // Requests within the two limits below always take less.
  static constexpr size_t kMaxMemoryBytes = 1 << 20;
  static constexpr size_t kSmallBytes = 64 << 10, kSmallColumns = 1024;

  struct Spare {
    DecodedRequest request;
    size_t most_bytes = 0;  // the size of the largest message so far

    bool is_small() const { return most_bytes <= kSmallBytes; }

    // Whether the request uses no more than roughly kMaxMemoryBytes of memory.
    bool IsLight() const {
      if (is_small()) return request.columns().size() <= kSmallColumns;
      return request.MemoryBytes() <= kMaxMemoryBytes;
    }
  };

  std::unique_ptr<Spare> Take(size_t message_bytes) {
    std::unique_ptr<Spare> spare = TakeAny();
    spare->most_bytes = std::max(spare->most_bytes, message_bytes);
    return spare;
  }

  void GiveBack(std::unique_ptr<Spare> spare) {
    spare->request.Clear();
    if (!spare->IsLight()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (spare_.size() == kMaxSpare || spare->most_bytes > kMaxSpareBytes - bytes_) return;
    bytes_ += spare->most_bytes;
    spare_.push_back(std::move(spare));
  }

 private:
  static constexpr size_t kMaxSpare = 256;
  static constexpr size_t kMaxSpareBytes = 16 << 20;

  std::unique_ptr<Spare> TakeAny() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (spare_.empty()) return std::make_unique<Spare>();
    std::unique_ptr<Spare> spare = std::move(spare_.back());
    spare_.pop_back();
    bytes_ -= spare->most_bytes;
    return spare;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Spare>> spare_ ABSL_GUARDED_BY(mutex_) = [] {
    std::vector<std::unique_ptr<Spare>> room;
    room.reserve(kMaxSpare);  // so that returning a request never allocates
    return room;
  }();
  size_t bytes_ ABSL_GUARDED_BY(mutex_) =
      0;  // sum of the spares' most_bytes, at most kMaxSpareBytes
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_WIRE_CALLS_H_
