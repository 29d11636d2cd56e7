// The page for Prometheus.
#ifndef COLCAST_SERVER_PAGES_METRICS_PAGE_H_
#define COLCAST_SERVER_PAGES_METRICS_PAGE_H_

#include <string>

#include "server/backend.h"
#include "server/http1/message.h"

namespace colcast::pages {

// Everything that the server counts, as listed in docs/metrics.md.
http::Response MetricsPage(const Backend& backend, const std::string& server_version);

}  // namespace colcast::pages

#endif  // COLCAST_SERVER_PAGES_METRICS_PAGE_H_
