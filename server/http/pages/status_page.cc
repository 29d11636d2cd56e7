#include "server/http/pages/status_page.h"

#include <utility>

#include "server/http/pages/embedded_files.h"
#include "server/http/pages/sections.h"

namespace colcast::http {
namespace {

// Names come from models and files: even if one became markup, nothing but the page's own script
// would run.
constexpr char kPolicy[] =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

Response Page(std::string content_type, std::string body) {
  Response response;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  response.headers = {{"Cache-Control", "no-store"},
                      {"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"}};
  return response;
}

}  // namespace

StatusPage::StatusPage(const Backend& backend, std::string server_version)
    : backend_(backend), server_version_(std::move(server_version)), sampler_(backend.metrics) {}

void StatusPage::AddTo(Router* router) const {
  router->AddPage("/", [] { return Page("text/html; charset=utf-8", kStatusHtml); });
  router->AddPage("/status.css", [] { return Page("text/css; charset=utf-8", kStatusCss); });
  router->AddPage("/status.js", [] { return Page("text/javascript; charset=utf-8", kStatusJs); });
  router->AddPage("/status_text.js",
                  [] { return Page("text/javascript; charset=utf-8", kStatusTextJs); });
  router->AddPage("/status.json", [this] { return Page("application/json", Json()); });
}

std::string StatusPage::Json() const {
  const std::vector<models::ModelSnapshot> models = backend_.models->Models();
  JsonWriter json;
  json.Object([&] {
    WriteTraffic(backend_, server_version_, sampler_.recent(), &json);
    WriteCallers(backend_.callers, &json);
    WriteModels(models, &json);
    WriteStates(models, &json);
    WriteItemTables(*backend_.item_tables, &json);
    WriteShadows(*backend_.shadows, &json);
  });
  return json.text();
}

}  // namespace colcast::http
