// Which handler answers which path.
#ifndef COLCAST_SERVER_HTTP1_ROUTER_H_
#define COLCAST_SERVER_HTTP1_ROUTER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/http1/message.h"

namespace colcast::http {

// Called where the request was read; what takes long goes to a worker and answers from there.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

// Whether a request's body is worth reading, from all but the body. Called where the request is
// read.
using BodyFilter = std::function<bool(const Request&)>;

// Made before the server starts, immutable from then on.
class Router {
 public:
  // GET and HEAD of exactly `path` answer with what `page` returns, any other method with 405. A
  // page whose making took 100 ms of this second is shared, and made again every 100 ms.
  void AddPage(std::string path, std::function<Response()> page);

  // Every method of every path that begins with `prefix`, in upper or lower case, unless it is a
  // page's. Without `wants_body` every body is wanted.
  void AddTree(std::string prefix, Handler handler, BodyFilter wants_body = nullptr);

  // Pages want none.
  bool WantsBody(const Request& head) const;

  // Hands the exchange to its handler, or answers 404.
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
