// Reads and plans requests; estimates and measures the time and memory of their runs.
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "server/base/thread.h"
#include "server/inference/run.h"
#include "server/wire/data_type.h"

namespace colcast::inference {

namespace {

using scheduling::Clock;
using scheduling::JobProfile;
using scheduling::RequestClass;

// Adds the columns from item tables, because the plan depends on them, and plans the request.
Status FillAndPlan(PredictMember* member) {
  const Servable& servable = member->servable();
  const Signature* const signature = member->signature();
  PlannedPredict& planned = member->planned;
  if (signature != nullptr && servable.items() != nullptr) {
    Status status = servable.items()->Fill(*signature->def, &member->request(),
                                           &member->record()->unknown_keys);
    if (!status.ok()) return status;
  }
  Status status = servable.model().Plan(member->request(), NumberOf(signature),
                                        servable.batch_rules(), &planned.plan);
  if (!status.ok()) return status;
  engine::RequestProfile& profile = planned.plan->profile;
  profile.rows = std::clamp<int64_t>(profile.rows, 0, JobProfile::kMaxRows);
  if (profile.size == 0) profile.size = profile.rows;
  return status;
}

Status PlanOnce(PredictMember* member) {
  PlannedPredict& planned = member->planned;
  if (!planned.status) planned.status = WithinMemory([member] { return FillAndPlan(member); });
  return *planned.status;
}

// Returns INVALID_ARGUMENT, with TensorFlow Serving's message, if the request has more rows than
// max_batch_size allows.
Status CheckRows(const engine::RequestProfile& profile, const RequestClass& of) {
  const int64_t most = of.limits().max_request_rows;
  if (profile.group == 0 || profile.rows <= most) return OkStatus();
  return InvalidArgument("Task size ", profile.rows, " is larger than maximum input batch size ",
                         most, " (max_batch_size)");
}

// Plans the request and estimates its cost.
Status Estimate(PredictMember* member, AdmittedRequest* estimated) {
  if (Status status = PlanOnce(member); !status.ok()) return status;
  estimated->member = member;
  const engine::RequestProfile& profile = estimated->profile();
  estimated->request_class = member->signature()->request_class.get();
  estimated->cost = estimated->request_class->cost().Of(profile.size);
  return CheckRows(profile, *estimated->request_class);
}

// Size of a tensorflow::tstring, not counting the string's bytes.
constexpr double kStringObject = 24;

double BytesOfElement(const Column& column) {
  return column.dtype == DT_STRING ? kStringObject : static_cast<double>(ElementSize(column.dtype));
}

bool IsRepeated(const Column& column) { return !column.dims.empty() && column.dims[0] == 1; }

double ElementsOfRow(const Column& column) {
  double elements = 1;
  for (size_t i = 1; i < column.dims.size(); ++i) {
    elements *= static_cast<double>(std::max<int64_t>(0, column.dims[i]));
  }
  return elements;
}

double BytesOfColumn(const Column& column, int64_t rows) {
  double bytes = ElementsOfRow(column) * BytesOfElement(column);
  if (!column.dims.empty()) bytes *= static_cast<double>(std::max<int64_t>(0, column.dims[0]));
  if (column.dtype == DT_STRING) bytes += static_cast<double>(column.values.received_bytes());
  return IsRepeated(column) ? bytes * static_cast<double>(rows) : bytes;
}

// Names the input that takes the most memory: `input "x" of shape [1,1000]`. Empty without inputs.
std::string LargestInput(const DecodedRequest& request, int64_t rows) {
  const Span<Column> columns = request.columns();
  const Column* const largest =
      std::max_element(columns.begin(), columns.end(), [rows](const Column& a, const Column& b) {
        return BytesOfColumn(a, rows) < BytesOfColumn(b, rows);
      });
  if (largest == columns.end()) return "";
  return "input \"" + Readable(largest->name) + "\" of shape " + ShapeName(largest->dims);
}

}  // namespace

scheduling::RunNeeds NeedsOf(const AdmittedRequest& admitted) {
  return NeedsOfRun(*admitted.request_class, admitted.cost, admitted.profile().input_bytes);
}

Status Refusal(const AdmittedRequest& admitted, const scheduling::WorkerPool& workers) {
  const engine::RequestProfile& profile = admitted.profile();
  Status status = TooMuchMemory(profile.rows, profile.input_bytes, NeedsOf(admitted).bytes,
                                workers.options().memory.max_bytes);
  status.message += "; the largest is " + LargestInput(admitted.member->request(), profile.rows);
  return status;
}

bool Admit(PredictMember* member, Clock::duration waited, AdmittedRequest* admitted) {
  member->record()->queue_wait = waited;
  const Status status = WithinMemory([&] {
    Status read = member->Read();
    if (read.ok()) read = Estimate(member, admitted);
    return read;
  });
  if (!status.ok()) member->Finish(status, nullptr);
  return status.ok();
}

JobProfile JobProfileOf(const AdmittedRequest& admitted) {
  const engine::RequestProfile& profile = admitted.profile();
  return {admitted.request_class, profile.group, profile.group == 0 ? 0 : profile.rows,
          admitted.cost};
}

void DescribePredict(PredictMember* member, JobProfile* profile) {
  AdmittedRequest estimated;
  // Leaves the profile empty on an error, because a request that will be refused must not use up
  // its class's room in the queue.
  if (Estimate(member, &estimated).ok()) *profile = JobProfileOf(estimated);
}

namespace {

// A run of at least this cost is long and reserves a worker (RunNeeds::worker). At this cost, a
// job's handicap in the queue reaches its limit.
constexpr Clock::duration kLong =
    scheduling::RequestQueue::kLongestHandicap / scheduling::RequestQueue::kAgeing;

// A run of unknown cost is assumed to be long if its input has at least this size.
constexpr int64_t kMuchInput = 1 << 20;
constexpr std::chrono::seconds kUnknown(6);

}  // namespace

Clock::duration BusyTime::Now() {
  if (!scheduling::ThisThreadIsNice()) return Clock::now().time_since_epoch();
  return CpuTimeOfThisThread();
}

scheduling::RunNeeds NeedsOfRun(scheduling::RequestClass& of, Clock::duration cost,
                                int64_t input_bytes) {
  scheduling::RunNeeds needs;
  needs.bytes = of.memory().Of(input_bytes);
  if (cost.count() == 0 && input_bytes >= kMuchInput) cost = kUnknown;
  if (cost >= kLong) needs.worker = cost;
  return needs;
}

Status TooMuchMemory(int64_t rows, int64_t input_bytes, int64_t bytes, int64_t max_bytes) {
  constexpr int64_t kMiB = 1 << 20;
  return ResourceExhausted("the request's ", rows, " rows, ", input_bytes / kMiB,
                           " MiB of inputs as tensors, are estimated to take ", bytes / kMiB,
                           " MiB in one run; --max_run_bytes is ", max_bytes, " (",
                           max_bytes / kMiB, " MiB), and the server may have less left");
}

namespace {

constexpr double kMost = 1e15;

// Tries `place` first, because most requests send columns in the same order.
const Column* FindColumn(const DecodedRequest& request, size_t place, std::string_view name) {
  const Span<Column> columns = request.columns();
  if (place < columns.size() && columns[place].name == name) return &columns[place];
  return request.Find(name);
}

// Bytes of padding for the column at `place` in the first request.
double PaddingOfColumn(const std::vector<RequestOfRows>& requests, size_t place) {
  const Column& first = requests[0].request->columns()[place];
  double longest = 0, rows = 0, elements = 0;
  for (const RequestOfRows& one : requests) {
    const Column* const column = FindColumn(*one.request, place, first.name);
    if (column == nullptr || column->dims.empty()) continue;
    const auto its_rows =
        static_cast<double>(IsRepeated(*column) ? one.rows : std::max<int64_t>(0, column->dims[0]));
    const double of_row = ElementsOfRow(*column);
    longest = std::max(longest, of_row);
    rows += its_rows;
    elements += its_rows * of_row;
  }
  return (rows * longest - elements) * BytesOfElement(first);
}

}  // namespace

int64_t PaddingBytes(const std::vector<RequestOfRows>& requests) {
  double all = 0;
  const Span<Column> columns = requests[0].request->columns();
  for (size_t place = 0; place < columns.size(); ++place) {
    if (columns[place].dims.size() >= 2) all += PaddingOfColumn(requests, place);
  }
  return static_cast<int64_t>(std::min(all, kMost));
}

}  // namespace colcast::inference
