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

// The column that a source in this folder is.
inline const WireColumn* AsWire(const ColumnSource* source) {
  return static_cast<const WireColumn*>(source);
}

// Made to be used again. The request must outlive its use.
struct PlannedRequest {
  // Set by Signature::Receive(), or by whoever has the columns of a batch.
  std::vector<int> outputs;           // those asked for: positions in the sorted aliases, rising
  std::vector<WireColumn> columns;    // in the request's order; no value has been decoded
  std::vector<ReceivedInput> inputs;  // by name, these or those of a batch: WireColumns all

  // Set by Signature::Plan().
  SignatureInputs::Scratch plan;

  // The following REQUIRE a plan.
  int64_t rows() const { return plan.plan.rows; }
  bool sent(size_t input) const { return plan.plan.actions[input] != InputAction::kDefault; }
  // By the signature's input. REQUIRES sent().
  const WireColumn& column(size_t input) const { return *AsWire(plan.sources[input]); }

  // What sending columns once did for it. REQUIRES a plan.
  ExpansionStats Expansion() const;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PLANNED_REQUEST_H_
