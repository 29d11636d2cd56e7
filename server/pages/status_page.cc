#include "server/pages/status_page.h"

#include <absl/strings/escaping.h>
#include <openssl/sha.h>

#include <string_view>
#include <utility>
#include <vector>

#include "server/pages/embedded_files.h"
#include "server/pages/sections.h"

namespace colcast::pages {
namespace {

using http::Response;

Response Uncached(std::string content_type, std::string body) {
  Response response;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  response.headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
  return response;
}

// The 'sha256-...' of the only element of that name, for a content security policy.
std::string HashOf(std::string_view html, const std::string& element) {
  const std::string begin = "<" + element + ">", end = "</" + element + ">";
  const size_t at = html.find(begin) + begin.size();
  const std::string_view text = html.substr(at, html.find(end) - at);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return "'sha256-" + absl::Base64Escape({reinterpret_cast<char*>(digest), sizeof(digest)}) + "'";
}

// Names come from models and clients. The policy ensures that only the page's own script runs, even
// if a name were parsed as markup.
Response Page() {
  Response page = Uncached("text/html; charset=utf-8", kStatusHtml);
  page.headers.emplace_back("Content-Security-Policy",
                            "default-src 'none'; style-src " + HashOf(kStatusHtml, "style") +
                                "; script-src " + HashOf(kStatusHtml, "script") +
                                "; connect-src 'self'; img-src data:; base-uri 'none'; "
                                "form-action 'none'; frame-ancestors 'self'");
  return page;
}

}  // namespace

StatusPage::StatusPage(const Backend& backend, std::string server_version)
    : backend_(backend), server_version_(std::move(server_version)), sampler_(backend.metrics) {}

void StatusPage::AddTo(http::Router* router) const {
  router->AddPage("/", [page = Page()] { return page; });
  router->AddPage("/status.json", [this] { return Uncached("application/json", Json()); });
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

}  // namespace colcast::pages
