#include <absl/flags/flag.h>
#include <absl/strings/match.h>
#include <absl/strings/str_split.h>

#include <string>
#include <utility>
#include <vector>

#include "server/base/text_proto.h"
#include "server/flags/parts.h"
#include "server/protos/item_table_config.pb.h"

ABSL_FLAG(
    std::vector<std::string>, item_table, {},
    "comma-separated MODEL:KEY:DIRECTORY: requests to the model with a column of that key may "
    "leave out the features that the table in the directory has (docs/items.md)");
ABSL_FLAG(std::string, item_table_config_file, "",
          "more tables, or more about them: colcast.ItemTableConfigs in protobuf's text format");

namespace colcast::flags {
namespace {

Status CheckTable(const items::ItemTableConfig& table, const std::string& source) {
  for (const auto& [name, value] :
       {std::pair<const char*, const std::string&>{"model", table.model},
        {"key", table.key},
        {"base_path", table.base_path}}) {
    if (value.empty()) return InvalidArgument(source, ": a table without ", name);
  }
  if (table.poll_wait.count() < 0) {
    return InvalidArgument(source, ": poll_wait_seconds below 0 for ", table.base_path);
  }
  return OkStatus();
}

Status ReadTable(const std::string& text, items::ItemTableConfig* table) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 2));
  if (parts.size() != 3) {
    return InvalidArgument("--item_table: \"", text, "\", expected MODEL:KEY:DIRECTORY");
  }
  table->model = parts[0];
  table->key = parts[1];
  table->base_path = parts[2];
  return CheckTable(*table, "--item_table");
}

Status ReadFile(const std::string& path, std::vector<items::ItemTableConfig>* tables) {
  ItemTableConfigs file;
  Status status = ReadTextProto(path, &file);
  for (const ItemTableConfig& read : file.table()) {
    if (!status.ok()) break;
    items::ItemTableConfig& table = tables->emplace_back();
    table.model = read.model();
    table.domain = read.domain();
    table.key = read.key();
    table.base_path = read.base_path();
    if (read.poll_wait_seconds() != 0) {
      table.poll_wait =
          std::chrono::milliseconds(static_cast<int64_t>(read.poll_wait_seconds() * 1000));
    }
    table.defaults_for_unknown = read.unknown_keys() == ItemTableConfig::DEFAULTS;
    status = CheckTable(table, path);
  }
  if (!status.ok()) status.message = "--item_table_config_file: " + status.message;
  return status;
}

Status CheckKeys(const std::vector<items::ItemTableConfig>& tables) {
  for (const items::ItemTableConfig& a : tables) {
    for (const items::ItemTableConfig& b : tables) {
      if (&a != &b && a.model == b.model && a.key == b.key) {
        return InvalidArgument("--item_table: two tables of model \"", a.model,
                               "\" with the key \"", a.key, "\"");
      }
    }
  }
  return OkStatus();
}

}  // namespace

Status ReadItemFlags(std::vector<items::ItemTableConfig>* tables) {
  for (const std::string& text : absl::GetFlag(FLAGS_item_table)) {
    Status status = ReadTable(text, &tables->emplace_back());
    if (!status.ok()) return status;
  }
  if (const std::string path = absl::GetFlag(FLAGS_item_table_config_file); !path.empty()) {
    if (Status status = ReadFile(path, tables); !status.ok()) return status;
  }
  return CheckKeys(*tables);
}

}  // namespace colcast::flags
