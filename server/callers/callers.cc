#include "server/callers/callers.h"

#include <algorithm>
#include <functional>

namespace colcast::callers {
namespace {

constexpr size_t kMaxNameBytes = 128;

// Only short printable ASCII is accepted, because names appear in answers, logs, metrics and pages.
std::string_view NameOf(std::string_view sent) {
  const bool is_name =
      sent.size() <= kMaxNameBytes &&
      std::all_of(sent.begin(), sent.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return is_name ? sent : std::string_view();
}

}  // namespace

Caller::Caller(Callers* callers, std::string_view sent)
    : counts_(*callers->counts().Of(NameOf(sent))) {
  const std::string_view name = NameOf(sent);
  if (name.empty()) return;
  const std::string key = "caller:" + std::string(name);
  client_ = std::max<uint64_t>(1, std::hash<std::string>()(key));
}

void Caller::Count(int64_t rows, std::chrono::nanoseconds run_time) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  counts_.requests.fetch_add(1, kRelaxed);
  counts_.rows.fetch_add(rows, kRelaxed);
  counts_.run_nanoseconds.fetch_add(run_time.count(), kRelaxed);
}

}  // namespace colcast::callers
