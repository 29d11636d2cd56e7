// The pages about the server: for Prometheus, and for people.
#ifndef COLCAST_SERVER_PAGES_PAGES_H_
#define COLCAST_SERVER_PAGES_PAGES_H_

#include <string>

#include "server/backend.h"
#include "server/http1/message.h"
#include "server/http1/router.h"
#include "server/metrics/recent.h"

namespace colcast::pages {

// Everything that the server counts, as listed in docs/metrics.md.
http::Response MetricsPage(const Backend& backend, const std::string& server_version);

// The status page: models, traffic and savings, as JSON at /status.json, and at "/" as a static
// page that renders the JSON.
class StatusPage {
 public:
  StatusPage(const Backend& backend, std::string server_version);

  // This object must outlive the router's server.
  void AddTo(http::Router* router) const;

 private:
  std::string Json() const;

  const Backend backend_;
  const std::string server_version_;
  const metrics::Sampler sampler_;
};

}  // namespace colcast::pages

#endif  // COLCAST_SERVER_PAGES_PAGES_H_
