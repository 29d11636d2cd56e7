// One request split by its candidates, so that several threads can run it.
#ifndef COLCAST_SERVER_ENGINE_BATCH_SLICED_REQUEST_H_
#define COLCAST_SERVER_ENGINE_BATCH_SLICED_REQUEST_H_

#include <memory>

#include "server/engine/engine.h"
#include "server/engine/program/programs.h"

namespace colcast::engine {

// Returns null in the same cases as Model::Split(), and also if a domain other than the user has an
// index, because slices would share its rows. If results depend on the longest list, each slice
// also runs a row with that list; in this case, returns null if batch sizes are restricted. Slices
// are filled up to allowed batch sizes with neighboring rows, if the request has enough of them.
// The plan must outlive the slices. REQUIRES a plan whose profile allows splitting.
std::unique_ptr<Slices> SliceRequest(const RequestPlan& plan);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_SLICED_REQUEST_H_
