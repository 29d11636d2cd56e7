// Pages about the server, for Prometheus and for people.
#ifndef COLCAST_SERVER_PAGES_PAGES_H_
#define COLCAST_SERVER_PAGES_PAGES_H_

#include <string>

#include "server/backend.h"
#include "server/http1/router.h"

namespace colcast::pages {

// Adds the status page (models, traffic and savings): JSON at /status.json and, at "/", a static
// page that renders it. Unless `metrics_path` is empty, also adds a page with all metrics
// (docs/metrics.md).
void AddPages(const Backend& backend, const std::string& server_version,
              const std::string& metrics_path, http::Router* router);

}  // namespace colcast::pages

#endif  // COLCAST_SERVER_PAGES_PAGES_H_
