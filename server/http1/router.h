// Maps paths to handlers.
#ifndef COLCAST_SERVER_HTTP1_ROUTER_H_
#define COLCAST_SERVER_HTTP1_ROUTER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/http1/message.h"

namespace colcast::http {

// Called on the thread that read the request; slow work must go to a worker, which answers.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

// Decides from the rest of the request whether to read its body. Called on the thread that reads
// the request.
using BodyFilter = std::function<bool(const Request&)>;

// Built before the server starts, and immutable afterwards.
class Router {
 public:
  // Answers GET and HEAD of exactly `path` with the result of `page`, other methods with 405. Once
  // rendering a page has taken 100 ms of the current second, requests share a copy that is renewed
  // every 100 ms.
  void AddPage(std::string path, std::function<Response()> page);

  // Handles every method for paths that begin with `prefix`, in upper or lower case, except pages.
  // Without `wants_body`, every body is read.
  void AddTree(std::string prefix, Handler handler, BodyFilter wants_body = nullptr);

  // Whether to read the request's body. Pages have none.
  bool WantsBody(const Request& head) const;

  // Passes the exchange to its handler, or answers 404.
  void Route(std::shared_ptr<Exchange> exchange) const;

 private:
  class Page;
  struct Tree {
    std::string prefix;
    Handler handler;
    BodyFilter wants_body;
  };

  const Tree* FindTree(const Request& request) const;

  std::map<std::string, std::shared_ptr<Page>, std::less<>> pages_;
  std::vector<Tree> trees_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_ROUTER_H_
