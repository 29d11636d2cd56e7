#include "server/load_check.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/log.h"
#include "server/stop_signals.h"

namespace colcast {
namespace {

constexpr char kSelf[] = "/proc/self/exe";

// The command line of this process: the executable's name and the flags.
std::vector<std::string> CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

// Starts a process and returns its id, or 0 and errno. The process inherits this thread's priority,
// the environment and the limits, but no blocked signals, and no descriptors, because a connection
// stays open as long as any process holds it.
pid_t Spawn(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&files, file, "/dev/null", O_RDWR, 0);
  }
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t process = 0;
  const int error = posix_spawn(&process, kSelf, &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  errno = error;
  return error == 0 ? process : 0;
}

// Waits until the process ends. Kills it and returns false if it runs longer than `timeout` or the
// server is asked to stop. Sets `*how` to waitpid's status.
bool WaitFor(pid_t process, std::chrono::seconds timeout, int* how) {
  constexpr std::chrono::milliseconds kLongestSleep(50);
  const auto give_up = std::chrono::steady_clock::now() + timeout;
  std::chrono::milliseconds sleep(1);
  while (waitpid(process, how, WNOHANG) == 0) {
    if (StopWasAsked() || std::chrono::steady_clock::now() >= give_up) {
      kill(process, SIGKILL);
      waitpid(process, how, 0);
      return false;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min(2 * sleep, kLongestSleep);
  }
  return true;
}

}  // namespace

Status CheckLoadInOwnProcess(const std::string& directory, std::chrono::seconds timeout) {
  std::vector<std::string> arguments = CommandLine();
  arguments.insert(arguments.begin() + 1, "--load_check_directory=" + directory);
  const pid_t process = Spawn(std::move(arguments));
  if (process == 0) {
    LogWarning(directory + " is loaded without a check: " + std::strerror(errno));
    return OkStatus();
  }
  int how = 0;
  if (!WaitFor(process, timeout, &how)) {
    if (StopWasAsked()) return {StatusCode::kCancelled, "the server is stopping"};
    return DeadlineExceeded("a process that loaded it had not ended after ", timeout.count(),
                            " s (--load_check_timeout_seconds)");
  }
  if (!WIFSIGNALED(how)) return OkStatus();
  const int signal = WTERMSIG(how);
  return Internal(
      "it crashes TensorFlow: a process that loaded it ended with signal ", signal, " (",
      strsignal(signal),
      "); its files are damaged, memory or threads are short, or the server's own files "
      "were replaced since it started");
}

}  // namespace colcast
