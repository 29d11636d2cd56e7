// The requests that were recorded with a model, as its signatures' inputs.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_RECORDED_REQUESTS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_RECORDED_REQUESTS_H_

#include <string>
#include <vector>

#include "server/engine/rewrites/graph_trials.h"
#include "server/engine/signature.h"

namespace colcast::engine {

class RecordedRequests {
 public:
  // The first Predict requests of the model's warm-up files. What cannot be read is left out: it is
  // warming up that reports it.
  explicit RecordedRequests(const std::string& directory);

  // Of the requests to a signature or, if there is none, of those to others that have all its
  // columns. Few are enough.
  std::vector<TrialFeeds> FeedsOf(const std::string& name, const Signature& signature) const;

 private:
  std::vector<std::string> messages_;  // serialized PredictRequests
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_RECORDED_REQUESTS_H_
