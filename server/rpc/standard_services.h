// The gRPC services that every server has: health and reflection.
#ifndef COLCAST_SERVER_RPC_STANDARD_SERVICES_H_
#define COLCAST_SERVER_RPC_STANDARD_SERVICES_H_

#include <absl/base/thread_annotations.h>

#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/http2/call.h"

namespace colcast::rpc {

// grpc.health.v1.Health, which says whether the server serves, for single checks and watches.

inline constexpr char kHealthService[] = "grpc.health.v1.Health";

class HealthService {
 public:
  // Answers for `services`, where "" is the whole server: NOT_SERVING until SetServing().
  explicit HealthService(std::vector<std::string> services) : services_(std::move(services)) {}

  // Applies to all services. May be called on any thread.
  void SetServing(bool serving);

  // This object must outlive all calls of the methods.
  http2::Methods Methods();

 private:
  class Watch;

  bool Knows(const std::string& service) const;
  bool serving();

  const std::vector<std::string> services_;
  std::mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_set<Watch*> watches_ ABSL_GUARDED_BY(mutex_);
};

// grpc.reflection.v1alpha.ServerReflection: lists services and the descriptors of their messages,
// for clients without .proto files. Implemented here because gRPC's own (libgrpc++_reflection) is a
// synchronous service, for which the server would keep a pool of polling threads.

inline constexpr char kReflectionService[] = "grpc.reflection.v1alpha.ServerReflection";
inline constexpr char kReflectionMethod[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

// Answers with the descriptors linked into this program. `services` are the names to list.
http2::Method ReflectionMethod(std::vector<std::string> services);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_STANDARD_SERVICES_H_
