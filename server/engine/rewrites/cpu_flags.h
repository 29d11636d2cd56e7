// The instruction sets of a CPU.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_CPU_FLAGS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_CPU_FLAGS_H_

#include <set>
#include <string>
#include <string_view>

namespace colcast::engine {

class CpuFlags {
 public:
  // Parses the contents of /proc/cpuinfo; only the first processor counts.
  explicit CpuFlags(std::string_view cpuinfo);

  // The flags of this machine.
  static CpuFlags OfThisMachine();

  bool Has(const std::string& flag) const { return flags_.count(flag) > 0; }

  const std::string& model() const { return model_; }  // e.g. "AMD EPYC 9B45"

 private:
  std::string model_;
  std::set<std::string> flags_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_CPU_FLAGS_H_
