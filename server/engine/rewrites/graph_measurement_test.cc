#include "server/engine/rewrites/graph_measurement.h"

#include <gtest/gtest.h>

namespace colcast::engine {
namespace {

// A clock that graphs put forward.
class GraphMeasurementTest : public ::testing::Test {
 protected:
  // A graph that takes so long; every fifth run, ten times that.
  GraphRun Takes(double seconds) {
    return [this, seconds, runs = 0](const Tensors&, Tensors*) mutable {
      now_ += ++runs % 5 == 0 ? 10 * seconds : seconds;
      return absl::OkStatus();
    };
  }

  std::vector<std::vector<Measurement>> MeasureFor(double seconds) {
    return Measure({&small_, &large_}, Takes(0.01), {Takes(0.005), Takes(0.02)}, seconds,
                   [this] { return now_; });
  }

  double now_ = 0;
  const Trial small_ = {{20, {}}, {}, false, 0.01};
  const Trial large_ = {{500, {}}, {}, false, 0.01};
};

TEST_F(GraphMeasurementTest, SharesAreOfTheOriginalsTime) {
  const auto measured = MeasureFor(1000);
  ASSERT_EQ(measured.size(), 2u);
  ASSERT_EQ(measured[0].size(), 2u);
  EXPECT_EQ(measured[0][0].rows, 20);
  EXPECT_EQ(measured[0][1].rows, 500);
  EXPECT_NEAR(measured[0][0].share, 0.5, 1e-9);
  EXPECT_NEAR(measured[1][1].share, 2, 1e-9);
  EXPECT_NEAR(measured[0][0].original_seconds, 0.01, 1e-9);
}

TEST_F(GraphMeasurementTest, StopsInTime) {
  const auto measured = MeasureFor(2);
  EXPECT_LT(now_, 4);
  EXPECT_GE(measured[0][0].rounds, 3);
}

TEST_F(GraphMeasurementTest, NothingIsRunThatWouldTakeLonger) {
  const Trial slow = {{500, {}}, {}, false, 30};
  EXPECT_TRUE(Measure({&slow}, Takes(30), {Takes(30)}, 100, [this] { return now_; })[0].empty());
  EXPECT_EQ(now_, 0);
}

TEST_F(GraphMeasurementTest, WithoutTimeNothingIsMeasured) {
  EXPECT_TRUE(MeasureFor(0)[0].empty());
}

}  // namespace
}  // namespace colcast::engine
