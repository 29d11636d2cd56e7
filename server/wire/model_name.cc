#include "server/wire/model_name.h"

#include <cstdint>

#include "server/wire/reader.h"

namespace colcast {
namespace {

constexpr uint32_t kFirstField = MakeTag(1, kLengthType);
constexpr int kMaxLooks = 64;
constexpr size_t kMaxNameBytes = 4 << 10;

bool FindFirstField(const Bytes& message, Bytes* field) {
  Reader reader(message);
  for (int i = 0; i < kMaxLooks && !reader.done(); ++i) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag)) return false;
    if (tag == kFirstField) return reader.ReadBytes(field);
    if (!reader.SkipValue(tag, kMaxDepth)) return false;
  }
  return false;
}

}  // namespace

std::string ModelNameOf(const Bytes& request, ModelNameDepth depth) {
  Bytes at = request;
  for (int i = 0; i < static_cast<int>(depth); ++i) {
    if (!FindFirstField(at, &at)) return "";
  }
  return at.size() > kMaxNameBytes ? "" : at.ToString();
}

}  // namespace colcast
