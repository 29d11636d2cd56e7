#include "server/engine/rewrites/rounded_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "server/engine/rewrites/float32_tables.h"
#include "server/engine/rewrites/lookup_testing.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"

namespace colcast::engine {
namespace {

using RoundedTablesTest = LookupGraphTest;

TEST_F(RoundedTablesTest, ATableOfAFormThatIsNotServedIsFreed) {
  const auto session = Start(Rounded());
  const tensorflow::DeviceMgr* devices = nullptr;
  TF_CHECK_OK(session->LocalDeviceManager(&devices));
  auto* const resources = devices->ListDevices().front()->resource_manager();
  const auto table = [&] {
    return std::weak_ptr(*(*RoundedTables::In(resources))
                              ->Find("localhost", "table", tensorflow::DT_INT8, resources));
  };
  const auto served = table();
  DropUnread({{"scores", {{"table"}, {{"table", tensorflow::DT_INT8}}}}}, {"table"}, session.get());
  EXPECT_FALSE(served.expired());
  DropUnread({{"scores", {{"table"}, {}}}}, {"table"}, session.get());
  EXPECT_TRUE(served.expired());
}

}  // namespace
}  // namespace colcast::engine
