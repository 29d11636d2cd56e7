#include "server/models/reload_waiters.h"

#include <optional>
#include <utility>

namespace colcast::models {
namespace {

std::string WhyNot(const ModelState& model) {
  const Status error = model.FirstError();
  if (!error.ok()) return error.message;
  return "model \"" + model.config().name + "\": no version under " + model.config().base_path;
}

// The result of a reload; nullopt while one of its models has not settled under its base path.
std::optional<Status> Outcome(const std::map<std::string, std::string>& base_paths,
                              const std::map<std::string, ModelState>& models) {
  int failures = 0;
  std::string reasons;
  for (const auto& [name, base_path] : base_paths) {
    const auto model = models.find(name);
    const bool is_replaced = model == models.end() || model->second.leaving() ||
                             model->second.config().base_path != base_path;
    if (!is_replaced && !model->second.settled_at_base_path()) return std::nullopt;
    if (!is_replaced && model->second.available_at_base_path()) continue;
    reasons += failures++ > 0 ? "; " : "";
    reasons += is_replaced
                   ? "model \"" + name + "\": replaced by a later configuration before it served"
                   : WhyNot(model->second);
  }
  if (failures == 0) return OkStatus();
  return Error(StatusCode::kUnknown, failures, " model(s) did not become available: ", reasons);
}

std::function<void()> Answer(ReloadDone done, const Status& status) {
  return [done = std::move(done), status] { done(status); };
}

}  // namespace

std::vector<std::function<void()>> ReloadWaiters::TakeSettled(
    const std::map<std::string, ModelState>& models) {
  std::vector<std::function<void()>> answers;
  std::vector<Waiter> still_waiting;
  for (Waiter& waiter : waiters_) {
    const std::optional<Status> outcome = Outcome(waiter.models, models);
    if (outcome) {
      answers.push_back(Answer(std::move(waiter.done), *outcome));
    } else {
      still_waiting.push_back(std::move(waiter));
    }
  }
  waiters_ = std::move(still_waiting);
  return answers;
}

std::vector<std::function<void()>> ReloadWaiters::TakeAll(const Status& status) {
  std::vector<std::function<void()>> answers;
  for (Waiter& waiter : waiters_) answers.push_back(Answer(std::move(waiter.done), status));
  waiters_.clear();
  return answers;
}

}  // namespace colcast::models
