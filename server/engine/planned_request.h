// A request as its signature reads it: resolved once, whatever it is run by.
#ifndef COLCAST_SERVER_ENGINE_PLANNED_REQUEST_H_
#define COLCAST_SERVER_ENGINE_PLANNED_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/wire_column.h"
#include "server/wire/predict_request.h"
#include "serving_patches/signature_inputs.h"

namespace colcast::engine {

// Made to be used again. The request must outlive its use.
struct PlannedRequest {
  // Set by Signature::Receive().
  const DecodedRequest* request = nullptr;
  std::vector<int> outputs;           // those asked for: positions in the sorted aliases, rising
  std::vector<WireColumn> columns;    // in the request's order; no value has been decoded
  std::vector<ReceivedInput> inputs;  // the same, by name

  // Set by Signature::Plan().
  SignatureInputs::Scratch plan;

  // The following REQUIRE a plan.
  int64_t rows() const { return plan.plan.rows; }
  bool sent(size_t input) const { return plan.plan.actions[input] != InputAction::kDefault; }
  // By the signature's input. REQUIRES sent().
  const WireColumn& column(size_t input) const {
    return *static_cast<const WireColumn*>(plan.sources[input]);
  }

  // What sending columns once did for it.
  ExpansionStats Expansion() const;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PLANNED_REQUEST_H_
