#include <cmath>
#include <cstddef>

#include "server/sender/sender.h"

namespace colcast::sender {
namespace {

constexpr uint64_t kMaxRequestBytes = INT32_MAX;  // protobuf's own limit
constexpr uint64_t kMaxCount = 1 << 28;

bool ReadBytes(std::FILE* file, void* bytes, size_t size) {
  return std::fread(bytes, 1, size, file) == size;
}

Status ReadNumber(std::FILE* file, uint64_t most, const char* what, uint64_t* number) {
  if (!ReadBytes(file, number, sizeof(*number))) {
    return InvalidArgument("the job ends before the ", what);
  }
  if (*number <= most) return OkStatus();
  return InvalidArgument("the ", what, " is ", *number, ", more than ", most);
}

Status ReadRequest(std::FILE* file, std::string* request) {
  uint64_t size = 0;
  Status status = ReadNumber(file, kMaxRequestBytes, "size of a request", &size);
  if (!status.ok()) return status;
  request->resize(size);
  if (ReadBytes(file, request->data(), size)) return OkStatus();
  return InvalidArgument("the job ends within a request of ", size, " bytes");
}

Status CheckCalls(const Job& job) {
  double last = 0;
  for (size_t i = 0; i < job.calls.size(); ++i) {
    const Job::Call& call = job.calls[i];
    if (!std::isfinite(call.due) || call.due < last) {
      return InvalidArgument("call ", i, " is due at ", call.due, " s, the one before at ", last);
    }
    if (call.request >= job.requests.size()) {
      return InvalidArgument("call ", i, " sends request ", call.request, " of ",
                             job.requests.size());
    }
    last = call.due;
  }
  return OkStatus();
}

}  // namespace

Status ReadJob(std::FILE* file, Job* job) {
  uint64_t count = 0;
  Status status = ReadNumber(file, kMaxCount, "number of requests", &count);
  for (uint64_t i = 0; status.ok() && i < count; ++i) {
    status = ReadRequest(file, &job->requests.emplace_back());
  }
  if (status.ok()) status = ReadNumber(file, kMaxCount, "number of calls", &count);
  if (!status.ok()) return status;
  job->calls.resize(count);
  if (!ReadBytes(file, job->calls.data(), count * sizeof(Job::Call))) {
    return InvalidArgument("the job ends within its ", count, " calls");
  }
  return CheckCalls(*job);
}

}  // namespace colcast::sender
