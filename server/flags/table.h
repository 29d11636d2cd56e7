// A table of flags (names, types, defaults, help) and a parser for command lines.
#ifndef COLCAST_SERVER_FLAGS_TABLE_H_
#define COLCAST_SERVER_FLAGS_TABLE_H_

#include <absl/strings/str_join.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/status.h"

namespace colcast::flags {

// A row of the table. `help` is one sentence for --help. The default is the value that the flag's
// variable has when the row is added.
struct Flag {
  std::string_view name;
  std::string_view help;
  std::string default_value;
  // Sets the variable. Returns an error that says which values are allowed; the caller adds the
  // flag's name and value.
  std::function<Status(const std::string& value)> set;
  bool is_switch = false;  // --NAME means true, --noNAME false
  // The heading in --help. Set by Table; flags without one are hidden.
  std::string_view subject = {};
};

// The allowed range of a numeric flag, ends included.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

class Table {
 public:
  // The subject of the rows that follow. --help hides rows with an empty subject.
  void Begin(std::string_view subject) { subject_ = subject; }

  void Add(std::string_view name, bool* to, std::string_view help);
  // `Whole` is int, int64_t or size_t.
  template <typename Whole>
  void Add(std::string_view name, Whole* to, std::string_view help, Range range = {});
  void Add(std::string_view name, double* to, std::string_view help, Range range = {});
  void Add(std::string_view name, std::string* to, std::string_view help);
  // A comma-separated list.
  void Add(std::string_view name, std::vector<std::string>* to, std::string_view help);

  // A duration, given as a number of `Unit`s.
  template <typename Unit, typename Rep, typename Period>
  void AddTime(std::string_view name, std::chrono::duration<Rep, Period>* to, std::string_view help,
               Range range) {
    using Time = std::chrono::duration<Rep, Period>;
    using Number = std::chrono::duration<double, typename Unit::period>;
    AddNumber(name, Number(*to).count(), help, range, [to](double value) {
      // A century from now is a time that clocks can represent.
      constexpr Number kLongest = std::chrono::hours(24 * 365 * 100);
      *to = std::chrono::duration_cast<Time>(std::min(Number(value), kLongest));
    });
  }

  // A choice among words.
  template <typename Enum>
  void AddChoice(std::string_view name, Enum* to, std::string_view help,
                 std::vector<std::pair<std::string_view, Enum>> choices) {
    std::string default_word;
    std::vector<std::string> words;
    for (const auto& [word, value] : choices) {
      words.emplace_back(word);
      if (value == *to) default_word = word;
    }
    const auto set = [to, choices, words](const std::string& text) {
      for (const auto& [word, value] : choices) {
        if (word != text) continue;
        *to = value;
        return OkStatus();
      }
      return InvalidArgument("expected one of ", absl::StrJoin(words, ", "));
    };
    Add(Flag{name, help, std::move(default_word), set});
  }

  void Add(Flag flag) {
    flag.subject = subject_;
    flags_.push_back(std::move(flag));
  }

  const std::vector<Flag>& flags() const { return flags_; }
  const Flag* Find(std::string_view name) const;  // null for an unknown name

 private:
  void AddNumber(std::string_view name, double default_value, std::string_view help, Range range,
                 std::function<void(double)> set);

  std::string_view subject_;
  std::vector<Flag> flags_;
};

// Lists the flags of these subjects, in this order, with their defaults and help.
std::string HelpText(const Table& table, const std::vector<std::string_view>& subjects);

// A flag of an earlier version.
struct RemovedFlag {
  std::string_view name;
  std::string_view instead;
};

// Parses a command line with the syntax of TensorFlow Serving and abseil: --NAME=VALUE, --NAME
// VALUE and, for switches, --NAME and --noNAME, with one dash or two. --flagfile=FILE names a file
// with one flag per line and comments after #. "--" ends the flags. Returns INVALID_ARGUMENT for an
// invalid value, for an argument that is not a flag, and for an unknown or removed flag.
Status ParseCommandLine(const std::vector<std::string>& arguments, const Table& table,
                        const std::vector<RemovedFlag>& removed);

}  // namespace colcast::flags

#endif  // COLCAST_SERVER_FLAGS_TABLE_H_
