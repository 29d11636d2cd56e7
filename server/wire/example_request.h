// A ClassificationRequest, RegressionRequest or MultiInferenceRequest in two parts: views of its
// tf.Examples, which are most of it, and the rest as a small message.
#ifndef COLCAST_SERVER_WIRE_EXAMPLE_REQUEST_H_
#define COLCAST_SERVER_WIRE_EXAMPLE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/schema.h"

namespace colcast {

// The tensorflow.serving.Input of a request.
struct ExampleInput {
  std::vector<Bytes> examples;  // each a serialized tf.Example, not looked into; views
  std::string context;          // a serialized, well-formed tf.Example; often empty
};

struct ExampleRequest {
  ExampleInput input;
  std::string rest;  // the message without its field 2, "input"
};

// Takes `message` apart by protobuf's rules: of example_list and example_list_with_context the one
// that comes last counts, and what comes of it in several pieces is merged. INVALID_ARGUMENT, with
// the field and the byte, for what protobuf would refuse, examples excepted. RESOURCE_EXHAUSTED
// beyond `max_examples`: each takes much more memory than it needs bytes on the wire. `schema` is
// kExampleRequest or kMultiInferenceRequest, `name` the message's, for errors.
Status DecodeExampleRequest(const Bytes& message, const MessageSchema& schema, const char* name,
                            int64_t max_examples, ExampleRequest* request);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_EXAMPLE_REQUEST_H_
