#include "server/states/prospects.h"

#include <gtest/gtest.h>

namespace colcast::states {
namespace {

int TriedOf(Prospects* prospects, int requests) {
  int tried = 0;
  for (int i = 0; i < requests; ++i) tried += prospects->Try();
  return tried;
}

TEST(Prospects, AreGoodUntilAStretchSaysOtherwise) {
  Prospects prospects(100);
  prospects.Tell(99, 0);
  EXPECT_EQ(TriedOf(&prospects, 160), 160);
  prospects.Tell(1, 0);
  EXPECT_EQ(TriedOf(&prospects, 160), 10) << "now and then";
}

TEST(Prospects, StayGoodWhileOneRowOf32IsFound) {
  Prospects prospects(320);
  prospects.Tell(320, 10);
  EXPECT_TRUE(prospects.good());
  prospects.Tell(320, 9);
  EXPECT_FALSE(prospects.good());
}

TEST(Prospects, AreGoodAgainOnceWhatIsTriedIsFound) {
  Prospects prospects(100);
  prospects.Tell(100, 0);
  ASSERT_FALSE(prospects.good());
  prospects.Tell(100, 90);
  EXPECT_EQ(TriedOf(&prospects, 160), 160);
}

}  // namespace
}  // namespace colcast::states
