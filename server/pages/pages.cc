#include "server/pages/pages.h"

#include <absl/strings/escaping.h>
#include <openssl/sha.h>

#include <string_view>
#include <utility>

#include "server/metrics/text_writer.h"
#include "server/pages/embedded_files.h"

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

// The 'sha256-...' of the page's only `element`, for a content security policy.
std::string HashOf(std::string_view html, const std::string& element) {
  const std::string begin = "<" + element + ">", end = "</" + element + ">";
  const size_t at = html.find(begin) + begin.size();
  const std::string_view text = html.substr(at, html.find(end) - at);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return "'sha256-" + absl::Base64Escape({reinterpret_cast<char*>(digest), sizeof(digest)}) + "'";
}

// Names come from models and clients. Even if one were parsed as markup, the policy allows only the
// page's own script to run.
Response StatusPage() {
  Response page = Uncached("text/html; charset=utf-8", kStatusHtml);
  page.headers.emplace_back("Content-Security-Policy",
                            "default-src 'none'; style-src " + HashOf(kStatusHtml, "style") +
                                "; script-src " + HashOf(kStatusHtml, "script") +
                                "; connect-src 'self'; img-src data:; base-uri 'none'; "
                                "form-action 'none'; frame-ancestors 'self'");
  return page;
}

}  // namespace

void AddPages(const Backend& backend, const std::string& server_version,
              const std::string& metrics_path, http::Router* router) {
  router->AddPage("/", [page = StatusPage()] { return page; });
  router->AddPage("/status.json", [backend, server_version] {
    return Uncached("application/json", StatusJson(backend, server_version));
  });
  const auto metrics = [backend, server_version] {
    return Uncached(metrics::kTextContentType, MetricsText(backend, server_version));
  };
  router->AddPage(kMetricsPath, metrics);
  if (!metrics_path.empty() && metrics_path != kMetricsPath) router->AddPage(metrics_path, metrics);
}

}  // namespace colcast::pages
