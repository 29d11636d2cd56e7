// The features that a model's parse op reads from each tf.Example, and the columns they become.
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
  kVarLen,            // columns NAME: [rows, longest], padded with zeros, and NAME/length: [rows]
  kFixedLenSequence,  // column NAME: [rows, longest, *shape], padded with the default
  kRagged,            // the same columns as kVarLen
};

struct ExampleFeature {
  std::string name;
  FeatureKind kind = FeatureKind::kFixedLen;
  DataType dtype = DT_INVALID;  // DT_INT64, DT_FLOAT or DT_STRING, which a tf.Example can hold
  // The shape of the value (kFixedLen) or of one step (kFixedLenSequence). Empty for other kinds.
  std::vector<int64_t> shape;
  // kFixedLen: the values of a missing feature; empty if the feature is required.
  // kFixedLenSequence: the value that pads a row after its last step; empty for zero. Numbers are
  // in memory layout, strings are records of TensorProto.string_val.
  std::string default_values;
  bool required = false;  // kFixedLen without a default
  bool user = false;      // the same in all Examples of most requests
};

// All features of one parse op. Immutable, shared by requests.
class ExampleFeatures {
 public:
  struct Entry {
    ExampleFeature feature;
    std::string length_name;  // name of the second column; empty for kinds without one
    int64_t size = 1;         // values in one row: the product of `shape`
  };

  // Returns INVALID_ARGUMENT if there are no features or, naming the feature, if one has a
  // duplicate name, a dtype that cannot be sent, or a shape or default that no parse op can have.
  static Status Create(std::vector<ExampleFeature> features,
                       std::unique_ptr<const ExampleFeatures>* result);

  ExampleFeatures(const ExampleFeatures&) = delete;
  ExampleFeatures& operator=(const ExampleFeatures&) = delete;

  size_t size() const { return entries_.size(); }
  const Entry& operator[](size_t index) const { return entries_[index]; }

  // The index of an item feature; 0 if all features are the user's.
  size_t item() const { return item_; }

  // The index of the feature called `name`; size() if there is no such feature.
  size_t Find(std::string_view name) const { return names_.Find(name); }

 private:
  ExampleFeatures() = default;

  std::vector<Entry> entries_;
  NameTable names_;  // the names of entries_
  size_t item_ = 0;
};

// Bytes of one number in memory; 0 for strings.
inline size_t NumberSize(DataType dtype) { return dtype == DT_STRING ? 0 : ElementSize(dtype); }

// Encodes one string as a record of TensorProto.string_val.
std::string StringRecord(std::string_view value);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_EXAMPLE_FEATURES_H_
