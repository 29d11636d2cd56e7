#include "server/wire/example_decoder.h"

#include <algorithm>

#include "server/wire/reader.h"

namespace colcast {
namespace {

constexpr uint32_t kFeaturesTag = MakeTag(1, kLengthType);  // in Example
constexpr uint32_t kEntryTag = MakeTag(1, kLengthType);     // a map entry in Features
constexpr uint32_t kKeyTag = MakeTag(1, kLengthType);
constexpr uint32_t kValueTag = MakeTag(2, kLengthType);

// Reads a length-delimited record; false if the next record has another tag or is truncated.
bool ReadRecord(uint32_t tag, const char** at, const char* end, std::string_view* body) {
  FlatReader reader(Bytes(*at, end - *at));
  Bytes bytes;
  if (!reader.SkipTag(tag) || !reader.ReadBytes(&bytes)) return false;
  *body = bytes.view();
  *at = body->data() + body->size();
  return true;
}

// Reads a map entry. The key must precede the value, as in the output of all protobuf libraries.
bool ReadEntry(const char** at, const char* end, std::string_view* key, std::string_view* feature) {
  std::string_view entry;
  if (!ReadRecord(kEntryTag, at, end, &entry)) return false;
  const char* inside = entry.data();
  const char* const entry_end = inside + entry.size();
  return ReadRecord(kKeyTag, &inside, entry_end, key) &&
         ReadRecord(kValueTag, &inside, entry_end, feature) && inside == entry_end;
}

// Calls read(begin, end) for each Features message of an Example. There are several if serialized
// Examples were concatenated, protobuf's way of merging. Returns false if the Example holds
// anything else.
template <typename Read>
bool ForEachFeatures(std::string_view example, Read&& read) {
  const char* at = example.data();
  const char* const end = at + example.size();
  while (at != end) {
    std::string_view features;
    if (!ReadRecord(kFeaturesTag, &at, end, &features)) return false;
    if (!read(features.data(), features.data() + features.size())) return false;
  }
  return true;
}

// The length of the common prefix of `a` and `b`, both `size` bytes long.
size_t CommonPrefix(const char* a, const char* b, size_t size) {
  size_t same = 0;
  for (; same + 8 <= size; same += 8) {
    const uint64_t differs = LoadEightBytes(reinterpret_cast<const uint8_t*>(a + same)) ^
                             LoadEightBytes(reinterpret_cast<const uint8_t*>(b + same));
    if (differs != 0) return same + __builtin_ctzll(differs) / 8;
  }
  while (same < size && a[same] == b[same]) ++same;
  return same;
}

}  // namespace

bool ExampleDecoder::Decode(const ExampleFeatures& features, const std::vector<Bytes>& examples) {
  Begin(features, examples);
  if (examples.empty()) return false;
  const auto rows = static_cast<int64_t>(examples.size());
  if (!ReadFirst(Contiguous(examples[0]))) return false;
  for (size_t i = 0; i < features.size(); ++i) {
    const size_t slot = slot_after_[i];
    const std::string_view feature = slot == 0 ? std::string_view() : slots_[slot - 1].feature;
    if (!states_[i].Begin(features[i], rows, feature)) return false;
  }
  for (int64_t row = 1; row < rows; ++row) {
    if (!ReadOther(row, Contiguous(examples[row]))) return false;
  }
  for (const Slot& slot : slots_) {
    if (slot.index == features.size() || !states_[slot.index].once()) continue;
    repeated_bytes_ += (rows - 1) * static_cast<int64_t>(slot.entry.size());
  }
  states_[features.item()].HoldAll();
  if (PadsTooMuch()) return false;
  for (size_t i = 0; i < features.size(); ++i) states_[i].Finish(&columns_, &column_count_);
  return true;
}

void ExampleDecoder::Begin(const ExampleFeatures& features, const std::vector<Bytes>& examples) {
  features_ = &features;
  if (states_.size() < features.size()) states_.resize(features.size());
  last_row_.assign(features.size(), -1);
  slot_after_.assign(features.size(), 0);
  slots_.clear();
  column_count_ = 0;
  repeated_bytes_ = 0;
  size_ = 0;
  size_t in_slices = 0;
  for (const Bytes& example : examples) {
    size_ += example.size();
    if (!example.contiguous()) in_slices += example.size();
  }
  joined_.clear();
  joined_.reserve(in_slices);  // prevents reallocation, which would invalidate views
}

std::string_view ExampleDecoder::Contiguous(const Bytes& example) {
  if (example.contiguous()) return example.view();
  const size_t begin = joined_.size();
  joined_.resize(begin + example.size());
  example.CopyTo(joined_.data() + begin);
  return std::string_view(joined_).substr(begin);
}

bool ExampleDecoder::Mark(int64_t row, size_t index) {
  if (index == features_->size()) return true;
  if (last_row_[index] == row) return false;
  last_row_[index] = row;
  ++found_;
  return true;
}

bool ExampleDecoder::ReadFirst(std::string_view example) {
  return ForEachFeatures(example, [this](const char* at, const char* end) {
    while (at != end) {
      const char* const begin = at;
      Slot slot;
      if (!ReadEntry(&at, end, &slot.key, &slot.feature)) return false;
      slot.entry = std::string_view(begin, at - begin);
      slot.message_end = end;
      slot.index = features_->Find(slot.key);
      slots_.push_back(slot);
      if (!Mark(0, slot.index)) return false;
      if (slot.index != features_->size()) slot_after_[slot.index] = slots_.size();
    }
    return true;
  });
}

bool ExampleDecoder::ReadOther(int64_t row, std::string_view example) {
  found_ = 0;
  slot_ = 0;
  const bool read = ForEachFeatures(
      example, [this, row](const char* at, const char* end) { return ReadFeatures(row, at, end); });
  if (!read) return false;
  for (size_t i = 0; i < features_->size() && found_ != features_->size(); ++i) {
    if (last_row_[i] == row) continue;
    ++found_;
    if (!states_[i].Set(row, std::string_view())) return false;
  }
  return true;
}

bool ExampleDecoder::ReadFeatures(int64_t row, const char* at, const char* end) {
  while (true) {
    if (!ReadExpected(row, &at, end)) return false;
    if (at == end) return true;
    std::string_view key, feature;
    if (!ReadEntry(&at, end, &key, &feature)) return false;
    size_t index;
    if (slot_ < slots_.size() && key == slots_[slot_].key) {
      index = slots_[slot_++].index;
    } else {
      index = features_->Find(key);
      if (index != features_->size() && slot_after_[index] != 0) slot_ = slot_after_[index];
    }
    if (!Mark(row, index)) return false;
    if (index != features_->size() && !states_[index].Set(row, feature)) return false;
  }
}

bool ExampleDecoder::ReadExpected(int64_t row, const char** at, const char* end) {
  bool stepped = true;
  while (stepped && slot_ < slots_.size() && *at != end) {
    stepped = false;
    const char* const message_end = slots_[slot_].message_end;
    const char* first = slots_[slot_].entry.data();
    const size_t most = std::min(end - *at, message_end - first);
    const char* const same_end = first + CommonPrefix(*at, first, most);
    for (; slot_ < slots_.size() && slots_[slot_].message_end == message_end; ++slot_) {
      const Slot& slot = slots_[slot_];
      const char* const entry_end = slot.entry.data() + slot.entry.size();
      const bool same = entry_end <= same_end;
      // Only the value may differ: the equal bytes before it include all lengths.
      const bool same_but_value = !same && slot.feature.data() <= same_end &&
                                  static_cast<size_t>(end - *at) >= slot.entry.size();
      if (!same && !same_but_value) break;
      if (!Mark(row, slot.index)) return false;
      const size_t value = slot.feature.data() - slot.entry.data();
      if (slot.index != features_->size()) {
        if (same) {
          states_[slot.index].SetSame(row);
        } else if (!states_[slot.index].SetOther(
                       row, std::string_view(*at + value, slot.feature.size()))) {
          return false;
        }
      }
      *at += slot.entry.size();
      stepped = true;
      if (!same) {
        ++slot_;
        break;
      }
    }
  }
  return true;
}

size_t ExampleDecoder::KeptBytes() const {
  size_t bytes = joined_.capacity();
  for (const ExampleColumn& state : states_) bytes += state.KeptBytes();
  return bytes;
}

bool ExampleDecoder::PadsTooMuch() const {
  constexpr double kMostTimes = 16;
  constexpr double kAlways = 1 << 20;
  double bytes = 0;
  for (size_t i = 0; i < features_->size(); ++i) {
    if ((*features_)[i].feature.kind == FeatureKind::kFixedLen) continue;
    bytes += sizeof(int64_t) * static_cast<double>(states_[i].Elements());
  }
  return bytes > kAlways + kMostTimes * static_cast<double>(size_);
}

}  // namespace colcast
