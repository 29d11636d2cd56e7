// Splits a ClassificationRequest, RegressionRequest or MultiInferenceRequest into views of its
// tf.Examples, which are most of its bytes, and the rest as a small message.
#ifndef COLCAST_SERVER_WIRE_EXAMPLE_REQUEST_H_
#define COLCAST_SERVER_WIRE_EXAMPLE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/wire/bytes.h"

namespace colcast {

// The tensorflow.serving.Input message of a request.
struct ExampleInput {
  std::vector<Bytes> examples;  // views of serialized tf.Examples, not checked
  std::string context;          // a serialized tf.Example, not checked; often empty
};

struct ExampleRequest {
  ExampleInput input;
  std::string rest;  // the message without its field 2, "input"; may be malformed
};

// Splits `message` by protobuf's rules: the last of example_list and example_list_with_context
// wins, and its repeated occurrences are merged. Returns INVALID_ARGUMENT, with field and byte, for
// an input that protobuf would refuse; checks neither the tf.Examples nor the rest. Returns
// RESOURCE_EXHAUSTED beyond `max_examples`, because an example takes much more memory than its
// bytes on the wire. `name` is the message's type, for errors.
Status DecodeExampleRequest(const Bytes& message, const char* name, int64_t max_examples,
                            ExampleRequest* request);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_EXAMPLE_REQUEST_H_
