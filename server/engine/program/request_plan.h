// A request as read once by its signature's programs: its columns and the batch to run.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_REQUEST_PLAN_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_REQUEST_PLAN_H_

#include "server/engine/engine.h"
#include "server/engine/program/program.h"
#include "server/engine/signature.h"

namespace colcast::engine {

class Programs;
struct TranscodedSignature;

// Set by Programs::Plan(), except `rules`, `examples` and the profile, which the model sets.
struct RequestPlan final : PlannedRequest {
  // Returns a released plan if there is one, so that reading a request does not allocate.
  static std::unique_ptr<RequestPlan, ReleasePlan> New();
  void Release() override;

  const DecodedRequest* request = nullptr;
  const BatchRules* rules = nullptr;
  const Programs* programs = nullptr;
  const TranscodedSignature* examples = nullptr;  // null unless tf.Examples are read as columns
  ReceivedRequest received;
  Batch batch;               // refers to `received`
  ExpansionStats expansion;  // what sending columns once saved
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_REQUEST_PLAN_H_
