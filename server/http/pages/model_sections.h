// The parts of the status page that tell what is served.
#ifndef COLCAST_SERVER_HTTP_PAGES_MODEL_SECTIONS_H_
#define COLCAST_SERVER_HTTP_PAGES_MODEL_SECTIONS_H_

#include <string>
#include <vector>

#include "server/models/model_status.h"

namespace colcast::http {

// A row for each version, with its state and why it is not served.
std::string ModelsSection(const std::vector<models::ModelSnapshot>& models);
// The columns of each signature of the versions that serve.
std::string SignaturesSection(const std::vector<models::ModelSnapshot>& models);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PAGES_MODEL_SECTIONS_H_
