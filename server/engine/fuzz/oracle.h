// Reads PredictRequests with protobuf and TensorFlow, and tf.Examples with TensorFlow's parser, as
// references for server/wire. The interface has only plain types, because oracle.cc is compiled
// without the fuzz targets' sanitizers.
#ifndef COLCAST_SERVER_ENGINE_FUZZ_ORACLE_H_
#define COLCAST_SERVER_ENGINE_FUZZ_ORACLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/example_features.h"

namespace colcast::fuzz {

enum class Verdict {
  kAccepted,
  kRefused,
  kTooLarge,  // not tried: more elements than a fuzz run should allocate
};

// One input and what tensorflow::Tensor::FromProto makes of it.
struct OracleColumn {
  int dtype;
  bool unknown_rank;
  std::vector<int64_t> dims;
  Verdict verdict;
  // TensorFlow accepts it; server/wire deliberately does not (column.h).
  bool refused_on_purpose;

  // Set only if accepted.
  std::string memory;                // the elements, unless they are strings
  std::vector<std::string> strings;  // the elements of a DT_STRING tensor
  std::string typed_proto;           // Tensor::AsProtoField, serialized
  std::string content_proto;         // Tensor::AsProtoTensorContent, serialized
};

struct OracleRequest {
  std::string model_name;
  std::optional<int64_t> version;
  std::optional<std::string> version_label;
  std::string signature_name;
  std::map<std::string, OracleColumn> columns;
  std::vector<std::string> output_filter;
};

// Returns nullopt if protobuf does not parse the message; fields that server/wire does not parse
// may hold anything. `descriptor_set` is the path of a FileDescriptorSet with TF Serving's protos,
// read once.
std::optional<OracleRequest> ReadWithTensorFlow(std::string_view message,
                                                const char* descriptor_set);

// All values of a feature: numbers in memory layout, or strings.
struct OracleValues {
  std::vector<int64_t> dims;     // kFixedLen, kFixedLenSequence: the tensor's dimensions
  std::vector<int64_t> lengths;  // other kinds: the length of each row
  int64_t longest = 0;           // kVarLen: from the sparse tensor's dense shape
  std::string memory;
  std::vector<std::string> strings;
};

class ExampleOracle {
 public:
  explicit ExampleOracle(const std::vector<ExampleFeature>& features);
  ~ExampleOracle();

  // Parses the examples, one OracleValues per feature. Returns false if TensorFlow refuses them.
  bool Parse(const std::vector<std::string>& examples, std::vector<OracleValues>* values) const;

 private:
  struct Config;
  std::unique_ptr<Config> config_;
};

}  // namespace colcast::fuzz

#endif  // COLCAST_SERVER_ENGINE_FUZZ_ORACLE_H_
