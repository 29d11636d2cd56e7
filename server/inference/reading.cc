#include "server/inference/reading.h"

#include <algorithm>

#include "server/base/out_of_memory.h"
#include "server/inference/input_bytes.h"
#include "server/inference/measured_run.h"

namespace colcast::inference {

using scheduling::Clock;
using scheduling::RequestClass;
using scheduling::WorkerPool;

namespace {

RequestClass* ClassOf(const PredictMember& member) {
  return member.servable().request_class(member.request().model_spec().signature_name);
}

}  // namespace

scheduling::RunNeeds NeedsOf(const Reading& reading) {
  if (reading.of == nullptr) return {};
  return NeedsOfRun(*reading.of, reading.cost, reading.input_bytes);
}

Status Refusal(const Reading& reading, const WorkerPool& workers) {
  // What it claims may be wrong, and no machine have that much: then that is what is said.
  const engine::Model& model = reading.member->servable().model();
  Status wrong = WithinMemory([&] { return model.Check(reading.member->request()); });
  if (!wrong.ok()) return wrong;
  return TooMuchMemory(reading.profile.rows, reading.input_bytes, NeedsOf(reading).bytes,
                       workers.max_run_bytes());
}

engine::RequestProfile ProfileOf(const DecodedRequest& request, const Servable& servable) {
  engine::RequestProfile profile = servable.model().Profile(request, servable.batch_rules());
  profile.rows = std::clamp<int64_t>(profile.rows, 0, scheduling::JobProfile::kMaxRows);
  if (profile.size == 0) profile.size = profile.rows;
  return profile;
}

Status CheckRows(const engine::RequestProfile& profile, const RequestClass& of) {
  const int64_t most = of.limits().max_request_rows;
  if (profile.group == 0 || profile.rows <= most) return OkStatus();
  return InvalidArgument("Task size ", profile.rows, " is larger than maximum input batch size ",
                         most, " (max_batch_size)");
}

bool Read(PredictMember* member, Clock::duration waited, Reading* reading) {
  reading->member = member;
  member->record()->queue_wait = waited;
  const Status status = WithinMemory([&] {
    Status read = member->Read();
    const ItemLookup* const items = read.ok() ? member->servable().items() : nullptr;
    if (items != nullptr)
      read = items->Fill(member->mutable_request(), &member->record()->unknown_keys);
    if (!read.ok()) return read;
    reading->of = ClassOf(*member);
    reading->profile = ProfileOf(member->request(), member->servable());
    if (reading->of == nullptr) return OkStatus();
    reading->cost = reading->of->cost().Of(reading->profile.size);
    reading->input_bytes = InputBytes(member->request(), reading->profile.rows);
    return CheckRows(reading->profile, *reading->of);
  });
  if (!status.ok()) member->Finish(status, nullptr);
  return status.ok();
}

scheduling::JobProfile JobProfileOf(const engine::RequestProfile& known, RequestClass* of,
                                    Clock::duration cost) {
  return {of, known.group, known.group == 0 ? 0 : known.rows, cost};
}

}  // namespace colcast::inference
