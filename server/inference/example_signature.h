// Signatures that take tf.Examples: finding one, and saying in a response which one answered.
#ifndef COLCAST_SERVER_INFERENCE_EXAMPLE_SIGNATURE_H_
#define COLCAST_SERVER_INFERENCE_EXAMPLE_SIGNATURE_H_

#include <string>

#include "server/inference/call.h"
#include "server/inference/servable.h"
#include "server/wire/status.h"
#include "tensorflow_serving/apis/model.pb.h"

namespace colcast::inference {

// The signature's name; "serving_default" for a request that gives none.
const std::string& SignatureNameOf(const tensorflow::serving::ModelSpec& spec);

// INVALID_ARGUMENT, with the signatures there are, if the model has none of that name.
Status FindSignature(const Servable& servable, const std::string& name,
                     const tensorflow::SignatureDef** signature);

// INVALID_ARGUMENT unless the signature's one input is ExampleBatch::kInput and, where the options
// say so, its method_name is `method_name`. `kind`, for the message: "classification".
Status CheckExampleSignature(const tensorflow::SignatureDef& signature, const char* kind,
                             const char* method_name, const CallOptions& options);

// The aliases of the signature's outputs, for messages: {classes, scores}.
std::string OutputNames(const tensorflow::SignatureDef& signature);

// The model's name as the request had it, and the signature and version that answered.
void SetAnsweringModel(const tensorflow::serving::ModelSpec& requested, const Servable& servable,
                       tensorflow::serving::ModelSpec* answered);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_SIGNATURE_H_
