// Adds the table and the input to an error about an index that is out of range. TensorFlow's
// single-threaded executor does not name the op in its errors.
#ifndef COLCAST_SERVER_ENGINE_LOOKUP_ERRORS_H_
#define COLCAST_SERVER_ENGINE_LOOKUP_ERRORS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

class LookupErrors {
 public:
  LookupErrors() = default;
  // `graph` is the graph of a signature with these inputs.
  LookupErrors(const tensorflow::GraphDef& graph, const SignatureInputs& inputs);

  // Adds to an error the lookups that may have caused it: the lookup whose node the message names
  // or, without a node, all lookups in tables with as many rows as the limit in the message. If
  // some depend on exactly one input with the wrong index, names only these. Returns other errors
  // unchanged. `feeds` are in the order of the inputs.
  absl::Status Explained(const absl::Status& status,
                         absl::Span<const tensorflow::Tensor> feeds) const;

 private:
  struct Lookup {
    std::string node;
    std::string table;
    int64_t rows;
    // The inputs on which the indices depend: name and position.
    std::vector<std::pair<std::string, int>> inputs;
  };
  std::vector<Lookup> lookups_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_LOOKUP_ERRORS_H_
