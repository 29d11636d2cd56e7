// Pages about the server, for Prometheus and for people.
#ifndef COLCAST_SERVER_PAGES_PAGES_H_
#define COLCAST_SERVER_PAGES_PAGES_H_

#include <string>

#include "server/backend.h"
#include "server/http1/router.h"

namespace colcast::pages {

inline constexpr char kMetricsPath[] = "/metrics";

// Adds "/", a static page that shows what serves and how fast; it reads /status.json (what serves)
// and kMetricsPath (all metrics, docs/metrics.md). Unless `metrics_path` is empty, the metrics are
// there, too.
void AddPages(const Backend& backend, const std::string& server_version,
              const std::string& metrics_path, http::Router* router);

}  // namespace colcast::pages

#endif  // COLCAST_SERVER_PAGES_PAGES_H_
