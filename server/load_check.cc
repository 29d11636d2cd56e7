#include "server/load_check.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
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

// The path of a file of this build that was replaced or removed since the server opened it; empty
// if there is none. The kernel marks such files in the list of mappings.
std::string ReplacedFile() {
  constexpr std::string_view kMark = " (deleted)";
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t begin = line.find('/');
    if (begin == std::string::npos || line.size() < begin + kMark.size()) continue;
    const std::string path = line.substr(begin, line.size() - begin - kMark.size());
    if (path + std::string(kMark) != line.substr(begin)) continue;
    const std::string name = path.substr(path.find_last_of('/') + 1);
    for (const char* const ours : {"colcast_model_server", "libcolcast_engine", "libtensorflow"}) {
      if (name.rfind(ours, 0) == 0) return path;
    }
  }
  return "";
}

// Fails if files were replaced: a new process would load the new files, so its result would say
// nothing about this process.
Status CheckFilesAreOurs() {
  const std::string replaced = ReplacedFile();
  if (replaced.empty()) return OkStatus();
  return FailedPrecondition(replaced,
                            " was replaced or removed since the server started, so nothing can be "
                            "tried in a separate process: restart the server");
}

// Runs this executable with this process's flags and `flag`. Returns OK if the new process exited
// by itself, with any code. `what` names the file to load, for the log.
Status TryInOwnProcess(const std::string& flag, const std::string& what,
                       std::chrono::seconds timeout) {
  if (Status status = CheckFilesAreOurs(); !status.ok()) return status;
  std::vector<std::string> arguments = CommandLine();
  arguments.insert(arguments.begin() + 1, flag);
  const pid_t process = Spawn(std::move(arguments));
  if (process == 0) {
    LogWarning(what + " is loaded without a check: " + std::strerror(errno));
    return OkStatus();
  }
  int how = 0;
  if (!WaitFor(process, timeout, &how)) {
    if (StopWasAsked()) return {StatusCode::kCancelled, "the server is stopping"};
    return DeadlineExceeded("a process that loaded it had not ended after ", timeout.count(), " s");
  }
  if (Status status = CheckFilesAreOurs(); !status.ok()) return status;
  if (WIFEXITED(how) && WEXITSTATUS(how) == kTooFewThreads) {
    return ResourceExhausted("the process that would check ", what,
                             " cannot create threads: the limit on processes (ulimit -u, pids.max) "
                             "or on address space (ulimit -v) is too low");
  }
  if (!WIFSIGNALED(how)) return OkStatus();
  const int signal = WTERMSIG(how);
  return Internal("a process that loaded it ended with signal ", signal, " (", strsignal(signal),
                  ")");
}

}  // namespace

Status CheckLoadInOwnProcess(const std::string& directory, std::chrono::seconds timeout) {
  Status status = TryInOwnProcess("--load_check_directory=" + directory, directory, timeout);
  if (status.code == StatusCode::kInternal) {
    status.message = "it crashes TensorFlow: " + status.message +
                     "; its files are damaged, or memory or threads are short";
  } else if (status.code == StatusCode::kDeadlineExceeded) {
    status.message += " (--load_check_timeout_seconds)";
  }
  return status;
}

Status CheckOpLibraryInOwnProcess(const std::string& path, std::chrono::seconds timeout) {
  constexpr std::chrono::seconds kLongestLoad(60);
  const Status status =
      TryInOwnProcess("--op_library_check=" + path, path, std::min(timeout, kLongestLoad));
  if (status.ok() || status.code == StatusCode::kCancelled) return status;
  return InvalidArgument("the op library ", path, " cannot be loaded: ", status.message);
}

void EndWithParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

Status RunLoadCheck(const std::string& directory, const models::Loader::Options& options,
                    const engine::Engine& engine) {
  models::Loader loader(options, &engine);
  return loader.LoadAndDiscard(directory);
}

}  // namespace colcast
