// Where a version's recorded requests are.
#ifndef COLCAST_SERVER_BASE_WARMUP_FILES_H_
#define COLCAST_SERVER_BASE_WARMUP_FILES_H_

namespace colcast {

// In a version's folder. The second one is the exporter's, for requests that TensorFlow Serving may
// refuse. Either may be missing.
inline constexpr const char* kWarmupFiles[] = {"/assets.extra/tf_serving_warmup_requests",
                                               "/assets.extra/colcast_warmup_requests"};

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_WARMUP_FILES_H_
