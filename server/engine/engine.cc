#include "server/engine/engine.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/log/globals.h"
#include "server/engine/model.h"
#include "server/engine/op_libraries.h"
#include "server/engine/status.h"

namespace colcast::engine {
namespace {

std::shared_ptr<const StateCaches> MakeMemories(const Options& options) {
  auto memories = std::make_shared<StateCaches>();
  if (options.user_state_bytes > 0) {
    memories->user = std::make_unique<states::StateCache>(options.user_state_bytes);
  }
  if (options.item_state_bytes > 0) {
    memories->item = std::make_unique<states::StateCache>(options.item_state_bytes);
  }
  return memories;
}

class TensorFlowEngine final : public Engine {
 public:
  explicit TensorFlowEngine(const Options& options)
      : options_(options), memories_(MakeMemories(options)) {
    // Drops INFO messages that bypass TensorFlow's logging if TensorFlow drops its own.
    const char* const level = std::getenv("TF_CPP_MIN_LOG_LEVEL");
    if (level != nullptr && std::string_view(level) != "0") {
      absl::SetMinLogLevel(absl::LogSeverityAtLeast::kWarning);
    }
  }

  Status LoadOpLibrary(const std::string& path) const override {
    return FromAbsl(engine::LoadOpLibrary(path));
  }

  Status Load(const std::string& directory, const std::vector<std::string>& tags,
              std::unique_ptr<Model>* model) const override {
    absl::StatusOr<std::unique_ptr<TensorFlowModel>> loaded =
        TensorFlowModel::Load(directory, tags, options_, memories_);
    if (!loaded.ok()) return FromAbsl(WithMissingOp(loaded.status()));
    *model = *std::move(loaded);
    return OkStatus();
  }

 private:
  const Options options_;
  const std::shared_ptr<const StateCaches> memories_;
};

}  // namespace
}  // namespace colcast::engine

__attribute__((visibility("default"))) colcast::engine::Engine* ColcastCreateEngine(
    const colcast::engine::Options& options) {
  colcast::SetLogSink(options.log);
  return new colcast::engine::TensorFlowEngine(options);
}
