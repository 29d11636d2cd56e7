#include "server/flags/flags.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "server/engine_library.h"
#include "server/flags/rows.h"
#include "server/flags/table.h"

namespace colcast {
namespace {

constexpr char kUsage[] =
    "colcast_model_server: serves TensorFlow ranking models with TensorFlow Serving's API\n\n"
    "  colcast_model_server --model_name=NAME --model_base_path=DIRECTORY [--port=8500]\n\n"
    "--flagfile=FILE reads flags from a file, one per line; --version prints the version.\n\n";

constexpr char kRateLimits[] = "Envoy limits callers' rates (deploy/envoy/render.py --caller-rate)";

constexpr char kGraphs[] =
    "the server measures nothing and writes nothing; `colcast tune --graphs` proves and measures "
    "graphs for --graph_choices";

const std::vector<flags::RemovedFlag>& RemovedFlags() {
  static const auto* const removed = new std::vector<flags::RemovedFlag>{
      {"graph_choices_directory", kGraphs},
      {"graph_measuring_ms", kGraphs},
      {"graph_tolerance", kGraphs},
      {"quota_config_file", kRateLimits},
      {"quota_config_file_poll_wait_seconds", kRateLimits},
      {"pair_bytes", "cache scores in the client; --item_state_bytes caches states"},
  };
  return *removed;
}

// Exits if an argument asks for help or the version, as tensorflow_model_server does.
void AnswerHelp(const std::vector<std::string>& arguments, const flags::Table& table) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return;
    if (argument == "--version" || argument == "-version") {
      std::puts("colcast_model_server " COLCAST_VERSION);
      for (const std::string& release : EngineReleases(ExecutableFolder())) {
        std::printf("TensorFlow Library: %s\n", release.c_str());
      }
      std::exit(0);
    }
    if (argument == "--help" || argument == "-help") {
      std::fputs((kUsage + flags::HelpText(table)).c_str(), stdout);
      std::exit(1);
    }
  }
}

}  // namespace

Status ParseFlags(int argc, char** argv, ServerOptions* options) {
  flags::Given given;
  flags::Table table;
  flags::AddServerRows(&given, options, &table);
  flags::AddModelRows(&given, options, &table);
  flags::AddRunRows(&given, options, &table);
  flags::AddRowsWithoutEffect(&options->warnings, &table);
  const std::vector<std::string> arguments(argv + std::min(1, argc), argv + argc);
  AnswerHelp(arguments, table);
  Status status = flags::ParseCommandLine(arguments, table, RemovedFlags());
  if (status.ok()) status = flags::FinishServer(given, options);
  if (status.ok()) status = flags::FinishRuns(given, options);
  return status.ok() ? flags::FinishModels(given, options) : status;
}

}  // namespace colcast
