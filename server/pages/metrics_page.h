// All metrics, as described in docs/metrics.md, in Prometheus' text format.
#ifndef COLCAST_SERVER_PAGES_METRICS_PAGE_H_
#define COLCAST_SERVER_PAGES_METRICS_PAGE_H_

#include <string>
#include <string_view>

#include "server/backend.h"

namespace colcast::pages {

std::string MetricsText(const Backend& backend, std::string_view server_version);

}  // namespace colcast::pages

#endif  // COLCAST_SERVER_PAGES_METRICS_PAGE_H_
