// What TensorFlow's parser reads from tf.Examples: the reference for ExampleDecoder. Plain types
// only, because the oracle is compiled without the sanitizers that the fuzz target has.
#ifndef COLCAST_SERVER_ENGINE_FUZZ_EXAMPLE_ORACLE_H_
#define COLCAST_SERVER_ENGINE_FUZZ_EXAMPLE_ORACLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace colcast::fuzz {

enum class OracleKind { kFixedLen, kVarLen, kFixedLenSequence, kRagged };

struct OracleFeature {
  std::string name;
  OracleKind kind;
  int dtype;  // a tensorflow::DataType
  std::vector<int64_t> shape;
  std::vector<std::string> defaults;  // strings, or numbers in memory layout; may be empty
};

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
  explicit ExampleOracle(const std::vector<OracleFeature>& features);
  ~ExampleOracle();

  // Parses the examples, one OracleValues per feature. Returns false if TensorFlow refuses them.
  bool Parse(const std::vector<std::string>& examples, std::vector<OracleValues>* values) const;

 private:
  struct Config;
  std::unique_ptr<Config> config_;
};

}  // namespace colcast::fuzz

#endif  // COLCAST_SERVER_ENGINE_FUZZ_EXAMPLE_ORACLE_H_
