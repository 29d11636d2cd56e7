// What the server reports about itself, as JSON for the status page and as metrics for Prometheus.
#ifndef COLCAST_SERVER_PAGES_SECTIONS_H_
#define COLCAST_SERVER_PAGES_SECTIONS_H_

#include <string_view>
#include <vector>

#include "server/backend.h"
#include "server/base/text.h"
#include "server/metrics/recent.h"
#include "server/metrics/text_writer.h"
#include "server/models/model_status.h"

namespace colcast::pages {

// The JSON functions add fields to the open object. Versions are text, as in the REST API, because
// JSON readers round numbers above 2^53.

// Every version with its state, the reason if it does not serve, and its signatures' columns
// (model_sections.cc).
void WriteModels(const std::vector<models::ModelSnapshot>& models, JsonWriter* json);

// The main figures of the server and of each model, signature, API and protocol
// (traffic_sections.cc).
void WriteTraffic(const Backend& backend, std::string_view server_version,
                  const metrics::Recent& recent, JsonWriter* json);

// The models' state stores and their hits (state_sections.cc).
void WriteStates(const std::vector<models::ModelSnapshot>& models, JsonWriter* json);
void WriteStates(const std::vector<models::ModelSnapshot>& models, metrics::TextWriter* writer);
void WriteTables(const std::vector<models::ModelSnapshot>& models, metrics::TextWriter* writer);
void WritePrograms(const std::vector<models::ModelSnapshot>& models, metrics::TextWriter* writer);

// The item tables (state_sections.cc).
void WriteItemTables(const items::ItemTables& tables, JsonWriter* json);
void WriteItemTables(const items::ItemTables& tables, metrics::TextWriter* writer);

}  // namespace colcast::pages

#endif  // COLCAST_SERVER_PAGES_SECTIONS_H_
