// What serves and why not, as JSON: the models' versions and the item tables. Figures are metrics
// (metrics_page.h).
#ifndef COLCAST_SERVER_PAGES_STATUS_JSON_H_
#define COLCAST_SERVER_PAGES_STATUS_JSON_H_

#include <string>
#include <string_view>
#include <vector>

#include "server/backend.h"
#include "server/base/text.h"
#include "server/models/model_status.h"

namespace colcast::pages {

std::string StatusJson(const Backend& backend, std::string_view server_version);

// Adds every version with its state, the reason if it does not serve, and its signatures' columns.
// Versions are text, as in the REST API, because JSON readers round numbers above 2^53.
void WriteModels(const std::vector<models::ModelSnapshot>& models, JsonWriter* json);

}  // namespace colcast::pages

#endif  // COLCAST_SERVER_PAGES_STATUS_JSON_H_
