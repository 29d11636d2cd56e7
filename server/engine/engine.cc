#include "server/engine/engine.h"

#include <utility>

#include "server/engine/model.h"
#include "server/engine/status.h"
#include "tensorflow/c/c_api.h"

namespace colcast::engine {
namespace {

class TensorFlowEngine final : public Engine {
 public:
  explicit TensorFlowEngine(const Options& options) : options_(options) {}

  std::string tensorflow_version() const override { return TF_Version(); }

  Status Load(const std::string& directory, const std::vector<std::string>& tags,
              std::unique_ptr<Model>* model) const override {
    absl::StatusOr<std::unique_ptr<Model>> loaded =
        TensorFlowModel::Load(directory, tags, options_);
    if (!loaded.ok()) return FromAbsl(loaded.status());
    *model = *std::move(loaded);
    return OkStatus();
  }

 private:
  const Options options_;
};

}  // namespace
}  // namespace colcast::engine

__attribute__((visibility("default"))) colcast::engine::Engine* ColcastCreateEngine(
    const colcast::engine::Options& options) {
  return new colcast::engine::TensorFlowEngine(options);
}
