#include "server/flags/table.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "server/base/file.h"

namespace colcast::flags {

namespace {

Status CheckRange(double value, Range range) {
  if (!(value >= range.least)) return InvalidArgument("expected at least ", range.least);
  if (value > range.most) return InvalidArgument("expected at most ", range.most);
  return std::isinf(value) ? InvalidArgument("expected a finite number") : OkStatus();
}

std::vector<std::string> Split(const std::string& text) {
  if (text.empty()) return {};
  return absl::StrSplit(text, ',');
}

}  // namespace

void Table::Add(std::string_view name, bool* to, std::string_view help) {
  const auto set = [to](const std::string& text) {
    return absl::SimpleAtob(text, to) ? OkStatus() : InvalidArgument("expected true or false");
  };
  Add(Flag{name, help, *to ? "true" : "false", set, /*is_switch=*/true});
}

template <typename Whole>
void Table::Add(std::string_view name, Whole* to, std::string_view help, Range range) {
  const auto set = [to, range](const std::string& text) {
    Whole value = 0;
    if (!absl::SimpleAtoi(text, &value)) return InvalidArgument("expected a whole number");
    Status status = CheckRange(static_cast<double>(value), range);
    if (status.ok()) *to = value;
    return status;
  };
  Add(Flag{name, help, absl::StrCat(*to), set});
}
template void Table::Add(std::string_view, int*, std::string_view, Range);
template void Table::Add(std::string_view, int64_t*, std::string_view, Range);
template void Table::Add(std::string_view, size_t*, std::string_view, Range);

void Table::Add(std::string_view name, double* to, std::string_view help, Range range) {
  AddNumber(name, *to, help, range, [to](double value) { *to = value; });
}

void Table::Add(std::string_view name, std::string* to, std::string_view help) {
  const auto set = [to](const std::string& text) {
    *to = text;
    return OkStatus();
  };
  Add(Flag{name, help, *to, set});
}

void Table::Add(std::string_view name, std::vector<std::string>* to, std::string_view help) {
  const auto set = [to](const std::string& text) {
    *to = Split(text);
    return OkStatus();
  };
  Add(Flag{name, help, absl::StrJoin(*to, ","), set});
}

void Table::AddNumber(std::string_view name, double default_value, std::string_view help,
                      Range range, std::function<void(double)> set) {
  const auto parse = [range, set = std::move(set)](const std::string& text) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) return InvalidArgument("expected a number");
    Status status = CheckRange(value, range);
    if (status.ok()) set(value);
    return status;
  };
  const bool is_whole = default_value == std::floor(default_value);
  Add(Flag{
      name, help,
      is_whole ? absl::StrCat(static_cast<int64_t>(default_value)) : absl::StrCat(default_value),
      parse});
}

const Flag* Table::Find(std::string_view name) const {
  const auto found = std::find_if(flags_.begin(), flags_.end(),
                                  [name](const Flag& flag) { return flag.name == name; });
  return found == flags_.end() ? nullptr : &*found;
}

std::string HelpText(const Table& table, const std::vector<std::string_view>& subjects) {
  std::string text;
  for (const std::string_view subject : subjects) {
    text += (text.empty() ? "" : "\n") + std::string(subject) + ":\n";
    for (const Flag& flag : table.flags()) {
      if (flag.subject != subject) continue;
      const std::string value = flag.default_value.empty() ? "\"\"" : flag.default_value;
      text += "  --" + std::string(flag.name) + "=" + value + "\n";
      text += "      " + std::string(flag.help) + "\n";
    }
  }
  return text;
}

namespace {

constexpr int kMaxDepth = 10;  // limit for nested flag files

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
    std::string content;
    if (Status status = ReadFile(path, &content); !status.ok()) {
      return InvalidArgument("--flagfile: ", status.message);
    }
    std::istringstream file(content);
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
      if (name == removed.name || name == "no" + std::string(removed.name)) {
        return InvalidArgument("the flag --", removed.name, " was removed: ", removed.instead);
      }
    }
    return InvalidArgument("unknown flag --", name, "; --help lists all");
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
