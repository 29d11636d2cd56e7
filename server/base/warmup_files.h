// The locations of a version's recorded requests.
#ifndef COLCAST_SERVER_BASE_WARMUP_FILES_H_
#define COLCAST_SERVER_BASE_WARMUP_FILES_H_

namespace colcast {

// Relative to the version's folder. The exporter writes the second file, for requests that
// TensorFlow Serving may refuse. Either may be missing.
inline constexpr const char* kWarmupFiles[] = {"/assets.extra/tf_serving_warmup_requests",
                                               "/assets.extra/colcast_warmup_requests"};

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_WARMUP_FILES_H_
