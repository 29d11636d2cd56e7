// Requests that run together, for tests.
#ifndef COLCAST_SERVER_ENGINE_BATCH_TESTING_H_
#define COLCAST_SERVER_ENGINE_BATCH_TESTING_H_

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "server/engine/batch/joined_requests.h"
#include "server/engine/status.h"
#include "server/engine/testing.h"

namespace colcast::engine {

inline void RunAlone(const Programs& programs, BatchMember* member) {
  RunResult result;
  member->status =
      FromAbsl(programs.Run(static_cast<const RequestPlan*>(member->plan)->batch, &result));
  if (member->status.ok()) member->outputs = std::make_unique<TensorOutputs>(std::move(result));
}

// Runs the requests together where allowed, and returns how many ran alone. A planning error
// becomes its member's status.
inline int RunTogether(const Programs& programs, const std::deque<SentPlan>& requests,
                       std::vector<BatchMember>* members) {
  *members = std::vector<BatchMember>(requests.size());
  std::vector<BatchMember*> planned;
  for (size_t i = 0; i < requests.size(); ++i) {
    BatchMember& member = (*members)[i];
    member.plan = requests[i].plan.get();
    member.status = FromAbsl(requests[i].status);
    if (member.status.ok()) planned.push_back(&member);
  }
  int num_alone = 0;
  const auto alone = [&](BatchMember* member) {
    ++num_alone;
    RunAlone(programs, member);
  };
  if (!planned.empty()) RunJoined(alone, planned);
  return num_alone;
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_TESTING_H_
