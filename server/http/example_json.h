// The body of a :classify or :regress request -> tf.Examples.
#ifndef COLCAST_SERVER_HTTP_EXAMPLE_JSON_H_
#define COLCAST_SERVER_HTTP_EXAMPLE_JSON_H_

#include "server/http/json_document.h"
#include "server/wire/status.h"
#include "tensorflow_serving/apis/input.pb.h"

namespace colcast::http {

// Fills `input` from "examples" and, if there is one, "context". A feature is a value or a list of
// values of one kind: whole numbers, true and false are int64, other numbers float, strings and
// {"b64": ...} bytes. INVALID_ARGUMENT names the example, the feature and the value.
Status ReadExamples(const rapidjson::Value& body, tensorflow::serving::Input* input);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_EXAMPLE_JSON_H_
