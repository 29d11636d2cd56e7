// What the state stores of the models hold, and how often it was of use.
#ifndef COLCAST_SERVER_HTTP_PAGES_STATE_SECTIONS_H_
#define COLCAST_SERVER_HTTP_PAGES_STATE_SECTIONS_H_

#include <string>
#include <vector>

#include "server/metrics/text_writer.h"
#include "server/models/model_status.h"

namespace colcast::http {

// For the status page; empty if no model runs in parts.
std::string StatesSection(const std::vector<models::ModelSnapshot>& models);

// For the metrics page.
void WriteStates(const std::vector<models::ModelSnapshot>& models, metrics::TextWriter* writer);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PAGES_STATE_SECTIONS_H_
