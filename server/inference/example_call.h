// What Classify and Regress share: a request of examples run on the one signature it names.
#ifndef COLCAST_SERVER_INFERENCE_EXAMPLE_CALL_H_
#define COLCAST_SERVER_INFERENCE_EXAMPLE_CALL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/inference/call.h"
#include "server/inference/example_batch.h"
#include "server/inference/example_signature.h"
#include "server/inference/servable.h"
#include "server/wire/status.h"

namespace colcast::inference {

// `input` is the request's, of which `request` itself may have none.
// `check(signature, options, &fetches)` says whether the signature will do and what to fetch;
// `convert(columns, examples, response->mutable_result())` makes the answer of what was fetched.
template <typename Request, typename Response, typename Check, typename Convert>
Status RunExamples(const Servable& servable, const Request& request, const ExampleInput& input,
                   const CallOptions& options, Check check, Convert convert, Response* response,
                   CallStats* stats) {
  const std::string& name = SignatureNameOf(request.model_spec());
  const tensorflow::SignatureDef* signature = nullptr;
  if (Status status = FindSignature(servable, name, &signature); !status.ok()) return status;
  std::vector<std::string> fetches;
  if (Status status = check(*signature, options, &fetches); !status.ok()) return status;
  ExampleBatch batch;
  if (Status status = ExampleBatch::Create(input, options, &batch); !status.ok()) return status;
  std::unique_ptr<engine::Outputs> outputs;
  if (Status status = batch.Run(servable, name, fetches, stats, &outputs); !status.ok()) {
    return status;
  }
  SetAnsweringModel(request.model_spec(), servable, response->mutable_model_spec());
  return convert(outputs->columns(), batch.size(), response->mutable_result());
}

// The input of a request that is one whole message; its views point into `message`.
template <typename Request>
Status TakeInput(const Request& request, const MessageSchema& schema, const CallOptions& options,
                 std::string* message, ExampleInput* input) {
  ExampleRequest parts;
  if (!request.SerializeToString(message)) {
    return ResourceExhausted("the request takes over 2 GiB as a ", Request::descriptor()->name());
  }
  Status status =
      DecodeExampleRequest(Bytes(*message), schema, Request::descriptor()->name().c_str(),
                           options.max_request_rows, &parts);
  *input = std::move(parts.input);
  return status;
}

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_CALL_H_
