#include <cstdint>

#include "server/base/available_cores.h"
#include "server/base/available_memory.h"
#include "server/base/thread_limit.h"
#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(int32_t, num_workers, 0,
          "requests that run at the same time; 0: one per core. A long one that cannot be split "
          "runs beside one worker");
ABSL_FLAG(int32_t, max_queued_requests, 1000,
          "requests that may wait for a worker; one more is answered RESOURCE_EXHAUSTED");
ABSL_FLAG(int64_t, max_run_bytes, 0,
          "memory that all runs in flight may take together, as learned from earlier ones; a "
          "request beyond it runs in slices or is answered RESOURCE_EXHAUSTED; 0: half of what the "
          "machine, the control group or the address space has");
ABSL_FLAG(bool, enable_serialization_as_tensor_content, false,
          "answer with tensor_content in place of typed fields");
ABSL_FLAG(bool, enable_signature_method_name_check, false,
          "run a signature only through the API its method_name names");

namespace colcast::flags {

Status ReadRequestFlags(scheduling::WorkerPool::Options* workers, bool* num_workers_given,
                        TensorEncoding* encoding, inference::CallOptions* calls) {
  const int num_workers = absl::GetFlag(FLAGS_num_workers);
  *num_workers_given = num_workers > 0;
  workers->num_workers = num_workers > 0 ? num_workers : AvailableCores();
  workers->max_queued_requests = absl::GetFlag(FLAGS_max_queued_requests);
  *encoding = absl::GetFlag(FLAGS_enable_serialization_as_tensor_content)
                  ? TensorEncoding::kTensorContent
                  : TensorEncoding::kTypedFields;
  calls->check_method_names = absl::GetFlag(FLAGS_enable_signature_method_name_check);
  const int64_t max_run_bytes = absl::GetFlag(FLAGS_max_run_bytes);
  workers->memory.max_bytes = max_run_bytes > 0 ? max_run_bytes : TotalMemory() / 2;
  workers->memory.available = [] { return AvailableMemory(); };
  return CheckRanges({{FLAGS_num_workers, 0, kMostThreads},
                      {FLAGS_max_queued_requests, 1},
                      {FLAGS_max_run_bytes, 0}});
}

}  // namespace colcast::flags
