#include <cstdint>
#include <utility>

#include "server/engine/fuzz/message_builder.h"
#include "server/wire/writer.h"

namespace colcast::fuzz {
namespace {

class Builder {
 public:
  Builder(const std::vector<std::string>& names, Decisions* decisions)
      : names_(names), d_(*decisions), damage_(d_.OneIn(3)) {}

  std::vector<std::string> Examples() {
    std::vector<std::string> examples;
    std::vector<std::string> first;
    const uint32_t rows = 1 + d_.Below(4);
    for (uint32_t row = 0; row < rows; ++row) {
      std::vector<std::string> entries = row == 0 || d_.OneIn(4) ? Entries() : Changed(first);
      if (row == 0) first = entries;
      examples.push_back(Example(entries));
    }
    return examples;
  }

 private:
  // Most requests contain nothing that TensorFlow may refuse; otherwise few would be accepted.
  bool Bad(uint32_t chances) { return damage_ && d_.OneIn(chances); }

  std::string Varint(uint64_t value) { return BuildVarint(value, Bad(100), &d_); }

  std::string Record(uint32_t number, const std::string& body) {
    const uint32_t type = Bad(250) ? d_.Below(8) : kLengthType;
    const uint64_t length = Bad(200) ? d_.Number() : body.size();
    return Varint(number << 3 | type) + Varint(length) + body;
  }

  std::vector<std::string> Entries() {
    std::vector<std::string> entries;
    for (uint32_t i = 0; i < names_.size(); ++i) {
      if (!d_.OneIn(20)) entries.push_back(Entry(names_[i], i));
    }
    while (d_.OneIn(4)) entries.push_back(Entry(Name(), d_.Byte()));
    while (d_.OneIn(3)) Swap(&entries);
    return entries;
  }

  std::vector<std::string> Changed(std::vector<std::string> entries) {
    for (uint32_t i = d_.Below(4); i > 0 && !entries.empty(); --i) {
      const uint32_t at = d_.Below(static_cast<uint32_t>(entries.size()));
      switch (d_.Below(6)) {
        case 0:
          if (d_.OneIn(3)) entries.erase(entries.begin() + at);
          break;
        case 1:
          Swap(&entries);
          break;
        case 2:
          entries.insert(entries.begin() + at, Entry(Name(), d_.Byte()));
          break;
        case 3:
          if (damage_ && !entries[at].empty()) entries[at].back() = static_cast<char>(d_.Byte());
          break;
        default:
          Replace(&entries);
      }
    }
    return entries;
  }

  // Replaces the values of a feature, or adds the feature if it is missing.
  void Replace(std::vector<std::string>* entries) {
    const uint32_t i = d_.Below(static_cast<uint32_t>(names_.size()));
    for (std::string& entry : *entries) {
      const size_t key = entry.find(Record(1, names_[i]));
      if (key > 3) continue;
      entry = Entry(names_[i], i);
      return;
    }
    entries->push_back(Entry(names_[i], i));
  }

  void Swap(std::vector<std::string>* entries) {
    if (entries->empty()) return;
    const auto size = static_cast<uint32_t>(entries->size());
    const uint32_t a = d_.Below(size), b = d_.Below(size);
    std::swap((*entries)[a], (*entries)[b]);
  }

  std::string Name() {
    if (Bad(2)) return names_[d_.Below(static_cast<uint32_t>(names_.size()))];
    return d_.OneIn(2) ? "" : "other";
  }

  // Usually, feature i has the kind of list that its dtype needs (dtypes take turns) and as many
  // values as its shape: one for the first three features, two for the next three.
  std::string Entry(const std::string& name, uint32_t i) {
    const uint32_t list = Bad(32) ? d_.Below(5) : 1 + i % 3;
    const bool any_count = i > 5 || Bad(16);
    const bool steps_of_two = i > 11 && i < 15 && !Bad(16);
    const uint32_t count = !any_count ? 1 + i / 3 : d_.Below(4) << (steps_of_two ? 1 : 0);
    std::string feature = (i > 2 && d_.OneIn(12)) || Bad(32) ? "" : Record(list, List(list, count));
    if (Bad(64)) feature += Record(list, List(list, count));
    if (Bad(128)) feature += Varint(d_.Number());
    std::string body = Record(1, name) + Record(2, feature);
    if (Bad(64)) body = Record(2, feature) + Record(1, name);
    if (Bad(128)) body = d_.OneIn(2) ? Record(1, name) : Record(2, feature);
    if (Bad(128)) body += Record(2, feature);
    return Record(1, body);
  }

  std::string List(uint32_t list, uint32_t count) {
    const bool packed = !d_.OneIn(4);
    std::string body;
    for (uint32_t i = 0; i < count; ++i) {
      if (list == 1) {
        body += Record(1, std::string(d_.Below(4), static_cast<char>('a' + i)));
      } else if (list == 2) {
        if (!packed) body += Varint(1 << 3 | kFixed32Type);
        const auto bits = static_cast<uint32_t>(d_.Number());
        for (int byte = 0; byte < 4; ++byte) body += static_cast<char>(bits >> 8 * byte);
      } else {
        if (!packed) body += Varint(1 << 3 | kVarintType);
        body += Varint(d_.Number());
      }
    }
    if (list == 1 || !packed) return body;
    return Bad(64) ? Record(1, body) + Record(1, body) : Record(1, body);
  }

  std::string Example(const std::vector<std::string>& entries) {
    const uint32_t split = d_.OneIn(8) ? d_.Below(static_cast<uint32_t>(entries.size() + 1)) : 0;
    std::string parts[2], example;
    for (uint32_t i = 0; i < entries.size(); ++i) parts[i < split ? 0 : 1] += entries[i];
    if (split > 0) example += Record(1, parts[0]);
    example += Record(1, parts[1]);
    if (Bad(64)) example += Record(2 + d_.Below(3), "x");
    if (d_.OneIn(64)) example = "";
    if (Bad(48) && !example.empty()) {
      const size_t at = (d_.Byte() | d_.Byte() << 8) % example.size();
      if (d_.OneIn(2)) {
        example.resize(at);
      } else {
        example[at] = static_cast<char>(d_.Byte());
      }
    }
    return example;
  }

  const std::vector<std::string>& names_;
  Decisions& d_;
  const bool damage_;
};

}  // namespace

std::vector<std::string> BuildExamples(const std::vector<std::string>& names,
                                       Decisions* decisions) {
  return Builder(names, decisions).Examples();
}

}  // namespace colcast::fuzz
