#include "server/shadow/kept_outputs.h"

#include <functional>
#include <numeric>

namespace colcast::shadow {

int64_t CountOf(const OutputColumn& output) {
  return std::accumulate(output.dims.begin(), output.dims.end(), int64_t{1}, std::multiplies<>());
}

KeptOutputs::KeptOutputs(const std::vector<OutputColumn>& outputs) {
  for (const OutputColumn& output : outputs) {
    auto kept = std::make_unique<Kept>();
    kept->name = output.name;
    kept->dims.assign(output.dims.begin(), output.dims.end());
    const int64_t count = CountOf(output);
    OutputColumn column = output;
    column.name = kept->name;
    column.dims = kept->dims;
    if (output.dtype == DT_STRING) {
      kept->strings.reserve(count);
      for (int64_t i = 0; i < count; ++i) {
        kept->strings.emplace_back(output.string_at(output.data, i));
      }
      column.data = kept->strings.data();
      column.string_at = [](const void* data, int64_t index) {
        return std::string_view(static_cast<const std::string*>(data)[index]);
      };
    } else {
      kept->bytes.assign(static_cast<const char*>(output.data), count * ElementSize(output.dtype));
      column.data = kept->bytes.data();
    }
    kept_.push_back(std::move(kept));
    columns_.push_back(column);
  }
}

}  // namespace colcast::shadow
