// What protobuf and TensorFlow read from a PredictRequest: the reference for server/wire. Plain
// types only, because the oracle is compiled without the sanitizers that the fuzz target has.
#ifndef COLCAST_SERVER_ENGINE_FUZZ_ORACLE_H_
#define COLCAST_SERVER_ENGINE_FUZZ_ORACLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// Returns nullopt if protobuf does not parse the message; fields that server/wire does not look
// into may hold anything. `descriptor_set` is the path of a FileDescriptorSet with TF Serving's
// protos, read once.
std::optional<OracleRequest> ReadWithTensorFlow(std::string_view message,
                                                const char* descriptor_set);

}  // namespace colcast::fuzz

#endif  // COLCAST_SERVER_ENGINE_FUZZ_ORACLE_H_
