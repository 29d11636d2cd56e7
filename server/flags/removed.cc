#include "server/flags/removed.h"

namespace colcast::flags {

const std::vector<RemovedFlag>& RemovedFlags() {
  static constexpr char kRateLimits[] =
      "Envoy limits callers' rates (token_bucket in deploy/envoy/envoy.yaml)";
  static constexpr char kGraphs[] =
      "the server measures nothing and writes nothing; `colcast tune --graphs` proves and measures "
      "graphs for --graph_choices";
  static constexpr char kOffload[] = "Envoy or the client routes large requests to another server";
  static const auto* const removed = new std::vector<RemovedFlag>{
      {"graph_choices_directory", kGraphs},
      {"graph_measuring_ms", kGraphs},
      {"graph_tolerance", kGraphs},
      {"offload_rows", kOffload},
      {"offload_target", kOffload},
      {"offload_timeout_ms", kOffload},
      {"lock_tables",
       "mapped tables are read into the page cache after a load; --map_tables=off reads them into "
       "memory"},
      {"pair_bytes", "cache scores in the client; --item_state_bytes caches states"},
      {"quota_config_file", kRateLimits},
      {"quota_config_file_poll_wait_seconds", kRateLimits},
      {"shadow_model_version",
       "log a share of the requests (logging_config) and send them to both versions with `colcast "
       "compare`, or mirror requests with Envoy (request_mirror_policies)"},
  };
  return *removed;
}

}  // namespace colcast::flags
