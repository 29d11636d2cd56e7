// A request as the programs of its signature read it, once: what it is, and the batch they run.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_REQUEST_PLAN_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_REQUEST_PLAN_H_

#include "server/engine/engine.h"
#include "server/engine/program/batch.h"
#include "server/engine/signature.h"

namespace colcast::engine {

class Programs;
struct TranscodedSignature;

// Set by Programs::Plan(); `rules`, `examples` and the profile by the model.
struct RequestPlan final : PlannedRequest {
  // One that a thread has released, so that reading the next request does not allocate.
  static std::unique_ptr<RequestPlan, ReleasePlan> New();
  void Release() override;

  const DecodedRequest* request = nullptr;
  const BatchRules* rules = nullptr;
  const Programs* programs = nullptr;
  const TranscodedSignature* examples = nullptr;  // null: no tf.Examples are read as columns
  ReceivedRequest received;
  Batch batch;               // refers to `received`
  ExpansionStats expansion;  // what sending columns once did for the request
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_REQUEST_PLAN_H_
