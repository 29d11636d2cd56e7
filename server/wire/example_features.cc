#include "server/wire/example_features.h"

#include <algorithm>
#include <utility>

#include "server/wire/data_type.h"
#include "server/wire/reader.h"
#include "server/wire/writer.h"

namespace colcast {
namespace {

// The largest number of values of one feature in one tf.Example.
constexpr int64_t kMaxSize = 1 << 20;

// Computes the number of elements; false if a dimension is negative or the product exceeds
// kMaxSize.
bool SizeOf(const std::vector<int64_t>& shape, int64_t* size) {
  *size = 1;
  for (int64_t dim : shape) {
    if (dim < 0 || dim > kMaxSize) return false;
    *size *= dim;
    if (*size > kMaxSize) return false;
  }
  return true;
}

int64_t CountValues(const ExampleFeature& feature) {
  const std::string& values = feature.default_values;
  if (feature.dtype != DT_STRING) return values.size() / NumberSize(feature.dtype);
  int64_t count = 0;
  Reader reader{Bytes(values)};
  uint32_t tag;
  Bytes value;
  while (!reader.done() && reader.ReadTag(&tag) && reader.ReadBytes(&value)) ++count;
  return count;
}

Status Check(const ExampleFeature& feature, int64_t size) {
  const std::string name = "feature " + Quoted(feature.name);
  if (feature.dtype != DT_STRING && ElementSize(feature.dtype) == 0) {
    return InvalidArgument(name, ": ", DataTypeName(feature.dtype), " cannot be sent");
  }
  const bool fixed = feature.kind == FeatureKind::kFixedLen;
  const bool sequence = feature.kind == FeatureKind::kFixedLenSequence;
  if (!fixed && !sequence && !feature.shape.empty()) {
    return InvalidArgument(name, ": only fixed lengths and sequences have a shape");
  }
  if (sequence && size == 0) return InvalidArgument(name, ": its steps have no values");
  const int64_t defaults = CountValues(feature);
  const int64_t expected = fixed ? (feature.required ? 0 : size) : sequence && defaults > 0 ? 1 : 0;
  if (defaults != expected) {
    return InvalidArgument(name, ": ", defaults, " default values, expected ", expected);
  }
  return OkStatus();
}

}  // namespace

Status ExampleFeatures::Create(std::vector<ExampleFeature> features,
                               std::unique_ptr<const ExampleFeatures>* result) {
  if (features.empty()) return InvalidArgument("the parse reads no features");
  std::unique_ptr<ExampleFeatures> made(new ExampleFeatures);
  made->entries_.reserve(features.size());
  for (ExampleFeature& feature : features) {
    int64_t size;
    if (!SizeOf(feature.shape, &size)) {
      return InvalidArgument("feature ", Quoted(feature.name), ": its shape is invalid or holds ",
                             "more than ", kMaxSize, " values");
    }
    if (Status status = Check(feature, size); !status.ok()) return status;
    const bool counted =
        feature.kind == FeatureKind::kVarLen || feature.kind == FeatureKind::kRagged;
    std::string length_name = counted ? feature.name + "/length" : "";
    made->entries_.push_back({std::move(feature), std::move(length_name), size});
  }
  for (const Entry& entry : made->entries_) {
    const size_t known = made->names_.size();
    if (made->names_.FindOrAdd(entry.feature.name) != known) {
      return InvalidArgument("feature ", Quoted(entry.feature.name), " appears twice");
    }
  }
  const auto item = std::find_if(made->entries_.begin(), made->entries_.end(),
                                 [](const Entry& entry) { return !entry.feature.user; });
  if (item != made->entries_.end()) made->item_ = item - made->entries_.begin();
  *result = std::move(made);
  return OkStatus();
}

std::string StringRecord(std::string_view value) {
  std::string record;
  StringWriter(&record).Field(static_cast<uint32_t>(ValueField::kString), value);
  return record;
}

}  // namespace colcast
