#include <algorithm>
#include <cstdint>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(int32_t, tensorflow_session_parallelism, 0,
          "threads for one operation and for the operations of one request; 0: as the two flags "
          "below say");
ABSL_FLAG(int32_t, tensorflow_intra_op_parallelism, 0, "threads one operation may use; 0: one");
ABSL_FLAG(int32_t, tensorflow_inter_op_parallelism, 0,
          "threads the operations of requests are spread over; 0: each request runs on its "
          "worker's thread alone");

namespace colcast::flags {

Status ReadEngineFlags(engine::Options* options) {
  Status status = CheckRanges({{FLAGS_tensorflow_session_parallelism, 0},
                               {FLAGS_tensorflow_intra_op_parallelism, 0},
                               {FLAGS_tensorflow_inter_op_parallelism, 0}});
  const int both = absl::GetFlag(FLAGS_tensorflow_session_parallelism);
  options->intra_op_parallelism =
      both > 0 ? both : std::max(1, absl::GetFlag(FLAGS_tensorflow_intra_op_parallelism));
  options->inter_op_parallelism =
      both > 0 ? both : absl::GetFlag(FLAGS_tensorflow_inter_op_parallelism);
  return status;
}

}  // namespace colcast::flags
