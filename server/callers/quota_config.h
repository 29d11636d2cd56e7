// --quota_config_file, and looking at it again.
#ifndef COLCAST_SERVER_CALLERS_QUOTA_CONFIG_H_
#define COLCAST_SERVER_CALLERS_QUOTA_CONFIG_H_

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "server/base/status.h"
#include "server/base/stop_flag.h"
#include "server/callers/quotas.h"

namespace colcast::callers {

// Reads a colcast.QuotaConfig in text form. Errors of ReadTextProto and of CheckQuotas, with the
// path.
Status ReadQuotaConfig(const std::string& path, std::vector<Quota>* quotas);

// Has quotas follow a file.
class QuotaFile {
 public:
  // Looks at the file every `wait`, on a thread of its own. 0: only when told to. `quotas` outlives
  // it.
  QuotaFile(std::string path, std::chrono::milliseconds wait, Quotas* quotas);
  ~QuotaFile();
  QuotaFile(const QuotaFile&) = delete;
  QuotaFile& operator=(const QuotaFile&) = delete;

  // What cannot be read changes nothing, and is logged unless it was the last time. Not from
  // several threads at once.
  void Look();

 private:
  void Run();

  const std::string path_;
  const std::chrono::milliseconds wait_;
  Quotas* const quotas_;
  std::string logged_;
  StopFlag stop_;
  std::thread thread_;
};

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_QUOTA_CONFIG_H_
