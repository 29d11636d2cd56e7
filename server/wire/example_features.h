// The features that a model's parse op reads from each tf.Example, and their columns.
#ifndef COLCAST_SERVER_WIRE_EXAMPLE_FEATURES_H_
#define COLCAST_SERVER_WIRE_EXAMPLE_FEATURES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/wire/data_type.h"
#include "server/wire/name_table.h"

namespace colcast {

enum class FeatureKind : uint8_t {
  kFixedLen,          // column NAME: [rows, *shape]
  kVarLen,            // NAME: [rows, longest], behind a row's values zeros; NAME/length: [rows]
  kFixedLenSequence,  // NAME: [rows, longest, *shape], behind a row's steps the default
  kRagged,            // as kVarLen
};

struct ExampleFeature {
  std::string name;
  FeatureKind kind = FeatureKind::kFixedLen;
  DataType dtype = DT_INVALID;  // of a tf.Example: DT_INT64, DT_FLOAT or DT_STRING
  // kFixedLen: of the value; kFixedLenSequence: of one step. Empty for the other kinds.
  std::vector<int64_t> shape;
  // kFixedLen: the values of a missing feature, none where it is required. kFixedLenSequence: the
  // one that fills a row behind its last step, none for zero. Numbers as they lie in memory,
  // strings as records of TensorProto.string_val.
  std::string default_values;
  bool required = false;  // kFixedLen: there is no default
  bool user = false;      // the same in all Examples of most requests
};

// All features of one parse. Immutable and shared by requests.
class ExampleFeatures {
 public:
  struct Entry {
    ExampleFeature feature;
    std::string length_name;  // of the second column; empty for the kinds that have none
    int64_t size = 1;         // values of `shape`
  };

  // INVALID_ARGUMENT, naming the feature, for one that comes twice, a dtype that cannot be sent, or
  // a shape or a default that no parse op has; and for no features.
  static Status Create(std::vector<ExampleFeature> features,
                       std::unique_ptr<const ExampleFeatures>* result);

  ExampleFeatures(const ExampleFeatures&) = delete;
  ExampleFeatures& operator=(const ExampleFeatures&) = delete;

  size_t size() const { return entries_.size(); }
  const Entry& operator[](size_t index) const { return entries_[index]; }

  // Of a feature that is not the user's, if there is one.
  size_t item() const { return item_; }

  // size() if no feature has that name.
  size_t Find(std::string_view name) const { return names_.Find(name); }

 private:
  ExampleFeatures() = default;

  std::vector<Entry> entries_;
  NameTable names_;  // of entries_
  size_t item_ = 0;
};

// Bytes of a number in memory; 0 for strings.
inline size_t NumberSize(DataType dtype) { return dtype == DT_STRING ? 0 : ElementSize(dtype); }

// One string as a record of TensorProto.string_val.
std::string StringRecord(std::string_view value);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_EXAMPLE_FEATURES_H_
