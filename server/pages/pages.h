// Pages about the server, for Prometheus and for people.
#ifndef COLCAST_SERVER_PAGES_PAGES_H_
#define COLCAST_SERVER_PAGES_PAGES_H_

#include <string>
#include <string_view>
#include <vector>

#include "server/backend.h"
#include "server/base/text.h"
#include "server/http1/router.h"
#include "server/models/model_state.h"

namespace colcast::pages {

inline constexpr char kMetricsPath[] = "/metrics";

// Adds "/", a static page that shows which models serve and how fast, and the two paths it reads:
// /status.json (the models' states) and kMetricsPath (all metrics, docs/metrics.md). Unless
// `metrics_path` is empty, also serves the metrics there.
void AddPages(const Backend& backend, const std::string& server_version,
              const std::string& metrics_path, http::Router* router);

// All metrics, in Prometheus' text format.
std::string MetricsText(const Backend& backend, std::string_view server_version);

// The states of the models' versions and of the item tables, with the reasons for failures.
std::string StatusJson(const Backend& backend, std::string_view server_version);

// Adds every version with its state, the reason if it does not serve, and its signatures' columns.
// Versions are text, as in the REST API, because JSON readers round numbers above 2^53.
void WriteModels(const std::vector<models::ModelSnapshot>& models, JsonWriter* json);

}  // namespace colcast::pages

#endif  // COLCAST_SERVER_PAGES_PAGES_H_
