#include "server/http1/router.h"

#include <strings.h>

#include <string_view>
#include <utility>

namespace colcast::http {
namespace {

bool BeginsWith(std::string_view path, const std::string& prefix) {
  return path.size() >= prefix.size() &&
         strncasecmp(path.data(), prefix.data(), prefix.size()) == 0;
}

}  // namespace

void Router::AddPage(std::string path, std::function<Response()> page) {
  pages_[std::move(path)] = std::move(page);
}

void Router::AddTree(std::string prefix, Handler handler, BodyFilter wants_body) {
  trees_.push_back({std::move(prefix), std::move(handler), std::move(wants_body)});
}

bool Router::WantsBody(const Request& head) const {
  if (pages_.find(head.path()) != pages_.end()) return false;
  const Tree* const tree = FindTree(head);
  return tree != nullptr && (!tree->wants_body || tree->wants_body(head));
}

void Router::Route(std::shared_ptr<Exchange> exchange) const {
  const Request& request = exchange->request();
  if (const auto page = pages_.find(request.path()); page != pages_.end()) {
    if (request.method == "GET" || request.method == "HEAD") {
      return exchange->Answer(page->second());
    }
    Response refusal = ErrorResponse(405, request.method + " of a page that can only be read");
    refusal.headers.emplace_back("Allow", "GET, HEAD");
    return exchange->Answer(std::move(refusal));
  }
  if (const Tree* const tree = FindTree(request)) return tree->handler(std::move(exchange));
  exchange->Answer(ErrorResponse(404, "Not found: " + std::string(request.path())));
}

const Router::Tree* Router::FindTree(const Request& request) const {
  for (const Tree& tree : trees_) {
    if (BeginsWith(request.path(), tree.prefix)) return &tree;
  }
  return nullptr;
}

}  // namespace colcast::http
