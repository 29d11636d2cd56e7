// The parts of the status page that change with every request.
#ifndef COLCAST_SERVER_HTTP_PAGES_TRAFFIC_SECTIONS_H_
#define COLCAST_SERVER_HTTP_PAGES_TRAFFIC_SECTIONS_H_

#include <string>
#include <string_view>

#include "server/backend.h"
#include "server/metrics/recent.h"

namespace colcast::http {

// Version and uptime.
std::string ServerLine(std::string_view server_version);
// The server's main figures.
std::string TilesSection(const Backend& backend, const metrics::Recent& recent);
// A row for each model, signature, API and protocol.
std::string TrafficSection(const metrics::Metrics& metrics, const metrics::Recent& recent);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PAGES_TRAFFIC_SECTIONS_H_
