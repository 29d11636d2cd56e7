// Converts the body of a :classify or :regress request to serialized tf.Examples.
#ifndef COLCAST_SERVER_REST_EXAMPLE_JSON_H_
#define COLCAST_SERVER_REST_EXAMPLE_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/http1/request_memory.h"
#include "server/rest/json_reader.h"
#include "server/wire/example_request.h"

namespace colcast::http {

// The request in a body; owns the memory of its examples.
class ExamplesJson {
 public:
  // `memory` may be null, and must outlive this object.
  explicit ExamplesJson(RequestMemory* memory) : memory_(memory), bytes_(memory) {}

  // Reads "signature_name", "examples" and, if present, "context" of `text`, replacing what an
  // earlier call read; see ReadJson(). A feature is a value or a list of values of one kind: whole
  // numbers, true and false are int64, other numbers float, strings and {"b64": ...} bytes.
  // INVALID_ARGUMENT names the example, the feature and the value. Returns RESOURCE_EXHAUSTED for
  // more than `max_examples`. Of several errors, returns a syntax error first, then one in the
  // signature's name, then one in the examples.
  Status Read(std::string_view text, int64_t max_examples);

  // Empty if the body has no "signature_name".
  const std::string& signature_name() const { return signature_name_; }
  const ExampleInput& input() const { return input_; }

 private:
  RequestMemory* const memory_;
  CountedBytes bytes_;
  std::string signature_name_;
  ExampleInput input_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_EXAMPLE_JSON_H_
