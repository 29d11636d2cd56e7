#include "server/base/thread.h"

#include <chrono>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "server/base/log.h"

namespace colcast {
namespace {

// Keeps repeated exceptions from occupying a core.
constexpr std::chrono::milliseconds kMoment{200};

}  // namespace

Status RunCaught(const std::string& what, const std::function<Status()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(what, ": memory is short");
  } catch (const std::system_error& error) {
    const bool is_limit = error.code() == std::errc::resource_unavailable_try_again;
    return Error(is_limit ? StatusCode::kResourceExhausted : StatusCode::kInternal, what, ": ",
                 error.what());
  } catch (const std::exception& error) {
    return Internal(what, ": ", error.what());
  }
}

Status StartThread(const std::string& what, std::function<void()> body, std::thread* thread) {
  return RunCaught("no thread for " + what, [&] {
    *thread = std::thread([what, body = std::move(body)] {
      const auto run = [&] {
        body();
        return OkStatus();
      };
      for (Status status = RunCaught(what, run); !status.ok(); status = RunCaught(what, run)) {
        LogError(status.message + "; it is tried again");
        std::this_thread::sleep_for(kMoment);
      }
    });
    return OkStatus();
  });
}

}  // namespace colcast
