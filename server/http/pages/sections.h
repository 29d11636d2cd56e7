// The parts of the status page, each in HTML.
#ifndef COLCAST_SERVER_HTTP_PAGES_SECTIONS_H_
#define COLCAST_SERVER_HTTP_PAGES_SECTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "server/backend.h"
#include "server/metrics/recent.h"
#include "server/metrics/text_writer.h"
#include "server/models/model_status.h"

namespace colcast::http {

// What is served (model_sections.cc).
// A row for each version, with its state and why it is not served.
std::string ModelsSection(const std::vector<models::ModelSnapshot>& models);
// The columns of each signature of the versions that serve.
std::string SignaturesSection(const std::vector<models::ModelSnapshot>& models);

// What changes with every request (traffic_sections.cc).
// Version and uptime.
std::string ServerLine(std::string_view server_version);
// The server's main figures.
std::string TilesSection(const Backend& backend, const metrics::Recent& recent);
// A row for each model, signature, API and protocol.
std::string TrafficSection(const metrics::Metrics& metrics, const metrics::Recent& recent);

// What each caller has asked, a row for each (caller_sections.cc); empty if nobody asks who they
// are.
std::string CallersSection(callers::Callers* callers);
// The same for the metrics page.
void WriteCallers(callers::Callers* callers, metrics::TextWriter* writer);

// What the state stores of the models hold, and how often it was of use (state_sections.cc); empty
// if no model runs in parts.
std::string StatesSection(const std::vector<models::ModelSnapshot>& models);
// The same for the metrics page.
void WriteStates(const std::vector<models::ModelSnapshot>& models, metrics::TextWriter* writer);
void WritePrograms(const std::vector<models::ModelSnapshot>& models, metrics::TextWriter* writer);

// The item tables, a row for each (item_sections.cc); empty if there are none.
std::string ItemTablesSection(const items::ItemTables& tables);
// The same for the metrics page.
void WriteItemTables(const items::ItemTables& tables, metrics::TextWriter* writer);

// How far shadow versions' answers are from those of the live ones, a row per output
// (shadow_sections.cc); empty if no model has a shadow.
std::string ShadowsSection(const shadow::Shadows& shadows);
// The same for the metrics page.
void WriteShadows(const shadow::Shadows& shadows, metrics::TextWriter* writer);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PAGES_SECTIONS_H_
