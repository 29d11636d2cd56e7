#include "server/states/key.h"

#include <gtest/gtest.h>

#include <string>

namespace colcast::states {
namespace {

Key HashOf(const KeyHash& hash, const std::string& text) { return hash(text.data(), text.size()); }

TEST(KeyHash, GivesTheSameBytesTheSameKey) {
  const KeyHash hash;
  EXPECT_EQ(HashOf(hash, "user 7"), HashOf(hash, "user 7"));
}

TEST(KeyHash, TellsBytesApart) {
  const KeyHash hash;
  EXPECT_NE(HashOf(hash, "user 7"), HashOf(hash, "user 8"));
  EXPECT_NE(HashOf(hash, ""), HashOf(hash, std::string(1, '\0')));
}

TEST(KeyHash, DrawsASecretOfItsOwn) {
  EXPECT_NE(HashOf(KeyHash(), "user 7"), HashOf(KeyHash(), "user 7"));
}

// From HighwayHash's own list for this key, so that the library is what it says it is.
TEST(KeyHash, IsHighwayHash) {
  const KeyHash hash(
      {0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x1716151413121110, 0x1F1E1D1C1B1A1918});
  const Key key = HashOf(hash, "");
  EXPECT_EQ(key.low, 0x0FED268F9D8FFEC7u);
  EXPECT_EQ(key.high, 0x33565E767F093E6Fu);
}

}  // namespace
}  // namespace colcast::states
