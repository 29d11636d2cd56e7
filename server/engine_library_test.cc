#include "server/engine_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace colcast {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kTwo = {"2.20.0", "2.21.0"};

std::string Chosen(const std::vector<std::string>& releases, const std::string& installed) {
  std::string chosen;
  const Status status = ChooseEngine(releases, installed, &chosen);
  return status.ok() ? chosen : status.message;
}

TEST(EngineChoiceTest, TheInstalledReleaseIsChosen) {
  EXPECT_EQ(Chosen(kTwo, "2.20.0"), "2.20.0");
  EXPECT_EQ(Chosen(kTwo, "2.21.0"), "2.21.0");
}

TEST(EngineChoiceTest, AReleaseWithoutAnEngineIsRefusedWithTheInstallCommand) {
  for (const char* const other : {"2.19.1", "2.21.1", "2.22.0"}) {
    EXPECT_THAT(Chosen(kTwo, other),
                AllOf(HasSubstr(std::string("found TensorFlow ") + other),
                      HasSubstr("needs TensorFlow 2.20.0 or 2.21.0: pip uninstall -y tensorflow "
                                "tensorflow-cpu; pip install tensorflow-cpu==2.21.0")));
  }
}

TEST(EngineChoiceTest, ASingleEngineIsChosenEvenWithoutTensorFlow) {
  EXPECT_EQ(Chosen({"2.20.0"}, ""), "2.20.0");
  EXPECT_THAT(Chosen(kTwo, ""), HasSubstr("found no TensorFlow; the server needs TensorFlow"));
  EXPECT_THAT(Chosen({}, "2.21.0"), HasSubstr("no libcolcast_engine-*.so beside"));
}

TEST(EngineChoiceTest, ReleasesAreReadFromFileNames) {
  const std::filesystem::path folder = testing::TempDir() + "engines";
  std::filesystem::create_directories(folder);
  for (const char* const name :
       {"libcolcast_engine-2.21.0.so", "libcolcast_engine-2.20.0.so", "colcast_model_server"}) {
    std::ofstream(folder / name) << "";
  }
  EXPECT_THAT(EngineReleases(folder), ElementsAre("2.20.0", "2.21.0"));
  EXPECT_THAT(EngineReleases(folder / "nothing"), IsEmpty());
}

}  // namespace
}  // namespace colcast
