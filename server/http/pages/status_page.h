// The page for people: what is served, how fast, and what it saves. Its files never change; its
// script draws the figures, which the server tells as JSON.
#ifndef COLCAST_SERVER_HTTP_PAGES_STATUS_PAGE_H_
#define COLCAST_SERVER_HTTP_PAGES_STATUS_PAGE_H_

#include <string>

#include "server/backend.h"
#include "server/http1/router.h"
#include "server/metrics/recent.h"

namespace colcast::http {

class StatusPage {
 public:
  StatusPage(const Backend& backend, std::string server_version);

  // At "/", with its style sheet, script and figures. The page must outlive the router's server.
  void AddTo(Router* router) const;

 private:
  std::string Json() const;

  const Backend backend_;
  const std::string server_version_;
  const metrics::Sampler sampler_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PAGES_STATUS_PAGE_H_
