#include "server/wire/model_name.h"

#include <gtest/gtest.h>

#include <string>

#include "server/wire/testing.h"

namespace colcast {
namespace {

std::string NameIn(const std::string& message, ModelNameDepth depth = ModelNameDepth::kInSpec) {
  std::string name;
  ForEachSlicing(message, [&](const Bytes& bytes) { name = ModelNameOf(bytes, depth); });
  return name;
}

TEST(ModelNameOfTest, FindsTheNameInEveryKindOfRequest) {
  const std::string spec = BytesField(1, BytesField(1, "ranker") + BytesField(3, "signature"));
  EXPECT_EQ(NameIn(spec + BytesField(2, "input")), "ranker");
  EXPECT_EQ(NameIn(BytesField(2, "input") + spec), "ranker");
  EXPECT_EQ(NameIn(BytesField(1, spec + BytesField(2, "method")), ModelNameDepth::kInSpecOfTask),
            "ranker");
  EXPECT_EQ(NameIn(BytesField(1, "ranker") + BytesField(3, "id"), ModelNameDepth::kInRequest),
            "ranker");
}

TEST(ModelNameOfTest, IsEmptyWhereThereIsNone) {
  EXPECT_EQ(NameIn(""), "");
  EXPECT_EQ(NameIn(BytesField(1, "")), "");
  EXPECT_EQ(NameIn(BytesField(1, BytesField(3, "signature"))), "");
  EXPECT_EQ(NameIn(BytesField(2, BytesField(1, "ranker"))), "");
  EXPECT_EQ(NameIn(BytesField(1, BytesField(1, "ranker")).substr(0, 7)), "");  // cut off
  EXPECT_EQ(NameIn("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "");
  EXPECT_EQ(NameIn(BytesField(1, BytesField(1, std::string(5000, 'x')))), "");
}

TEST(ModelNameOfTest, DoesNotReadOnAndOn) {
  const std::string spec = BytesField(1, BytesField(1, "ranker"));
  std::string before;
  for (int i = 0; i < 63; ++i) before += BytesField(2, "");
  EXPECT_EQ(NameIn(before + spec), "ranker");
  EXPECT_EQ(NameIn(before + BytesField(2, "") + spec), "");
}

}  // namespace
}  // namespace colcast
