#include "server/callers/quota_config.h"

#include <utility>

#include "server/base/log.h"
#include "server/base/text_proto.h"
#include "server/base/thread_priority.h"
#include "server/protos/quota_config.pb.h"

namespace colcast::callers {

Status ReadQuotaConfig(const std::string& path, std::vector<Quota>* quotas) {
  QuotaConfig config;
  if (Status status = ReadTextProto(path, &config); !status.ok()) return status;
  quotas->clear();
  for (const colcast::Quota& read : config.quota()) {
    Quota& quota = quotas->emplace_back();
    quota.model = read.model();
    quota.caller = read.caller();
    if (read.has_max_requests_in_flight()) {
      quota.max_requests_in_flight = read.max_requests_in_flight();
    }
    if (read.has_max_rows_per_second()) quota.max_rows_per_second = read.max_rows_per_second();
    if (read.has_max_burst_rows()) quota.max_burst_rows = read.max_burst_rows();
  }
  Status status = CheckQuotas(*quotas);
  if (!status.ok()) status.message = path + ": " + status.message;
  return status;
}

QuotaFile::QuotaFile(std::string path, std::chrono::milliseconds wait, Quotas* quotas)
    : path_(std::move(path)), wait_(wait), quotas_(quotas) {
  if (wait_.count() > 0) thread_ = std::thread([this] { Run(); });
}

QuotaFile::~QuotaFile() {
  stop_.Set();
  if (thread_.joinable()) thread_.join();
}

void QuotaFile::Run() {
  LowerThisThreadsPriority();
  while (!stop_.WaitFor(wait_)) Look();
}

void QuotaFile::Look() {
  std::vector<Quota> quotas;
  Status status = ReadQuotaConfig(path_, &quotas);
  if (status.ok()) status = quotas_->Set(std::move(quotas));
  if (!status.ok() && status.message != logged_) {
    LogWarning("--quota_config_file: the quotas stay as they are: " + status.message);
  }
  logged_ = std::move(status.message);
}

}  // namespace colcast::callers
