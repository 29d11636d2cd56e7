#include "server/http1/router.h"

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <mutex>
#include <string_view>
#include <utility>

#include "server/base/thread.h"

namespace colcast::http {

class Router::Page {
 public:
  explicit Page(std::function<Response()> make) : make_(std::move(make)) {}

  Response Get() {
    constexpr std::chrono::milliseconds kMostPerSecond(100);
    constexpr std::chrono::milliseconds kShared(100);
    const std::lock_guard<std::mutex> lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      spent_ = {};
    }
    const bool is_asked_for_too_often = spent_ > kMostPerSecond;
    if (!is_asked_for_too_often || now - made_last_ >= kShared) {
      made_last_ = now;
      const auto begin = CpuTimeOfThisThread();
      last_ = make_();
      if (is_asked_for_too_often) last_.gzipped = Gzip(last_.body);
      spent_ += CpuTimeOfThisThread() - begin;
    }
    return last_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::function<Response()> make_;
  std::mutex mutex_;
  Response last_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point second_ ABSL_GUARDED_BY(mutex_);  // the start of the current second
  Clock::time_point made_last_ ABSL_GUARDED_BY(mutex_);
  // page rendering time within that second
  std::chrono::nanoseconds spent_ ABSL_GUARDED_BY(mutex_){};
};

void Router::AddPage(std::string path, std::function<Response()> page) {
  pages_[std::move(path)] = std::make_shared<Page>(std::move(page));
}

void Router::AddTree(std::string prefix, Handler handler, BodyFilter wants_body) {
  trees_.push_back({std::move(prefix), std::move(handler), std::move(wants_body)});
}

bool Router::WantsBody(const Request& head) const {
  if (pages_.find(head.path()) != pages_.end()) return false;
  const Tree* const tree = FindTree(head);
  return tree != nullptr && (!tree->wants_body || tree->wants_body(head));
}

void Router::Route(std::shared_ptr<Exchange> exchange) const {
  const Request& request = exchange->request();
  if (const auto page = pages_.find(request.path()); page != pages_.end()) {
    if (request.method == "GET" || request.method == "HEAD") {
      return exchange->Answer(page->second->Get());
    }
    Response refusal = ErrorResponse(405, request.method + " of a read-only page");
    refusal.headers.emplace_back("Allow", "GET, HEAD");
    return exchange->Answer(std::move(refusal));
  }
  if (const Tree* const tree = FindTree(request)) return tree->handler(std::move(exchange));
  exchange->Answer(ErrorResponse(404, "Not found: " + std::string(request.path())));
}

const Router::Tree* Router::FindTree(const Request& request) const {
  for (const Tree& tree : trees_) {
    if (EqualIgnoringCase(request.path().substr(0, tree.prefix.size()), tree.prefix)) return &tree;
  }
  return nullptr;
}

}  // namespace colcast::http
