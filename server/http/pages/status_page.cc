#include "server/http/pages/status_page.h"

#include <utility>

#include "server/http/pages/embedded_files.h"
#include "server/http/pages/sections.h"

namespace colcast::http {
namespace {

// Names in pages come from models and files: even if one was not escaped, nothing but the page's
// own script would run.
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

// `page` with each {{NAME}} replaced.
std::string Fill(std::string page, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values) {
    const std::string place = "{{" + name + "}}";
    page.replace(page.find(place), place.size(), value);
  }
  return page;
}

}  // namespace

StatusPage::StatusPage(const Backend& backend, std::string server_version)
    : backend_(backend), server_version_(std::move(server_version)), sampler_(backend.metrics) {}

void StatusPage::AddTo(Router* router) const {
  router->AddPage("/", [this] { return Render(); });
  router->AddPage("/status.css", [] { return Page("text/css; charset=utf-8", kStatusCss); });
  router->AddPage("/status.js", [] { return Page("text/javascript; charset=utf-8", kStatusJs); });
}

Response StatusPage::Render() const {
  const std::vector<models::ModelSnapshot> models = backend_.models->Models();
  // Back to front: what a value holds is not looked at again.
  return Page("text/html; charset=utf-8",
              Fill(kStatusHtml, {{"signatures", SignaturesSection(models)},
                                 {"shadows", ShadowsSection(*backend_.shadows)},
                                 {"items", ItemTablesSection(*backend_.item_tables)},
                                 {"states", StatesSection(models)},
                                 {"models", ModelsSection(models)},
                                 {"callers", CallersSection(backend_.callers)},
                                 {"traffic", TrafficSection(*backend_.metrics, sampler_.recent())},
                                 {"tiles", TilesSection(backend_, sampler_.recent())},
                                 {"server", ServerLine(server_version_)}}));
}

}  // namespace colcast::http
