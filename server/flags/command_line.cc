#include "server/flags/command_line.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>

#include <fstream>

namespace colcast::flags {
namespace {

constexpr int kMaxDepth = 10;  // of nested flag files

class Parser {
 public:
  Parser(const Table& table, const std::vector<RemovedFlag>& removed)
      : table_(table), removed_(removed) {}

  Status Parse(const std::vector<std::string>& arguments, int depth = 0) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      if (argument == "--") {
        return i + 1 < arguments.size() ? NotAFlag(arguments[i + 1]) : OkStatus();
      }
      if (argument.size() < 2 || argument[0] != '-') return NotAFlag(argument);
      const size_t dashes = argument[1] == '-' ? 2 : 1;
      const size_t equals = argument.find('=');
      const std::string name = argument.substr(dashes, equals - dashes);
      const bool has_value = equals != std::string::npos;
      const Flag* flag = table_.Find(name);
      std::string value = has_value ? argument.substr(equals + 1) : "";
      if (flag == nullptr && !has_value && absl::StartsWith(name, "no")) {
        flag = table_.Find(name.substr(2));
        if (flag != nullptr && !flag->is_switch) flag = nullptr;
        value = "false";
      } else if (flag != nullptr && flag->is_switch && !has_value) {
        value = "true";
      } else if (!has_value && (flag != nullptr || name == "flagfile")) {
        if (++i == arguments.size()) return InvalidArgument("--", name, ": expected a value");
        value = arguments[i];
      }
      Status status = name == "flagfile" ? ParseFile(value, depth)
                      : flag == nullptr  ? Unknown(name)
                                         : Set(*flag, value);
      if (!status.ok()) return status;
    }
    return OkStatus();
  }

 private:
  static Status NotAFlag(const std::string& argument) {
    return InvalidArgument("unexpected argument \"", argument, "\"");
  }

  static Status Set(const Flag& flag, const std::string& value) {
    Status status = flag.set(std::string(absl::StripAsciiWhitespace(value)));
    if (!status.ok()) {
      status.message = "--" + std::string(flag.name) + "=" + value + ": " + status.message;
    }
    return status;
  }

  Status ParseFile(const std::string& path, int depth) {
    std::ifstream file(path);
    if (!file) return InvalidArgument("--flagfile: cannot read ", path);
    if (depth == kMaxDepth) return InvalidArgument("--flagfile: ", path, " is nested too deep");
    std::vector<std::string> arguments;
    for (std::string line; std::getline(file, line);) {
      const std::string flag(absl::StripAsciiWhitespace(line));
      if (!flag.empty() && flag[0] != '#') arguments.push_back(flag);
    }
    Status status = Parse(arguments, depth + 1);
    if (!status.ok()) status.message = path + ": " + status.message;
    return status;
  }

  Status Unknown(const std::string& name) const {
    for (const RemovedFlag& removed : removed_) {
      if (removed.name == name)
        return InvalidArgument("the flag --", name, " was removed: ", removed.instead);
    }
    const std::string closest = table_.Closest(name);
    if (closest.empty()) return InvalidArgument("unknown flag --", name, "; --help lists all");
    return InvalidArgument("unknown flag --", name, "; did you mean --", closest, "?");
  }

  const Table& table_;
  const std::vector<RemovedFlag>& removed_;
};

}  // namespace

Status ParseCommandLine(const std::vector<std::string>& arguments, const Table& table,
                        const std::vector<RemovedFlag>& removed) {
  return Parser(table, removed).Parse(arguments);
}

}  // namespace colcast::flags
