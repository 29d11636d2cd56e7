#include "server/http/pages/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "server/inference/testing.h"

namespace colcast::http {
namespace {

using models::ModelSnapshot;
using models::VersionSnapshot;
using models::VersionState;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

VersionSnapshot Version(int64_t number, VersionState state, Status error = OkStatus()) {
  VersionSnapshot version;
  version.status = {number, state, std::move(error)};
  version.path = "/models/m/" + std::to_string(number);
  return version;
}

std::string Models(const VersionSnapshot& version) {
  return ModelsSection({ModelSnapshot{"m", "/models/m", {version}}});
}

TEST(ModelsSectionTest, AVersionsState) {
  const struct {
    VersionState state;
    Status error;
    const char* badge;
  } kCases[] = {
      {VersionState::kStart, OkStatus(), ">waiting<"},
      {VersionState::kLoading, OkStatus(), ">loading<"},
      {VersionState::kAvailable, OkStatus(), ">serving<"},
      {VersionState::kUnloading, OkStatus(), ">unloading<"},
      {VersionState::kEnd, OkStatus(), ">unloaded<"},
      {VersionState::kEnd, Internal("broken"), ">failed<"},
  };
  for (const auto& one : kCases) {
    EXPECT_THAT(Models(Version(3, one.state, one.error)), HasSubstr(one.badge));
  }
}

TEST(ModelsSectionTest, NamesAndErrorsAreEscaped) {
  VersionSnapshot version = Version(3, VersionState::kEnd, Internal("<script>"));
  version.labels = {"<b>"};
  EXPECT_THAT(Models(version), AllOf(HasSubstr("&lt;script&gt;"), HasSubstr("&lt;b&gt;"),
                                     Not(HasSubstr("<script>"))));
}

TEST(ModelsSectionTest, AModelWithoutVersionsIsShownWithItsBasePath) {
  EXPECT_THAT(ModelsSection({ModelSnapshot{"m", "/models/m", {}}}),
              AllOf(HasSubstr("no version found yet"), HasSubstr("/models/m")));
}

TEST(SignaturesSectionTest, SaysHowManyRowsOfEachInputMayBeSent) {
  VersionSnapshot version = Version(3, VersionState::kAvailable);
  version.servable = inference::MakeServable(3, R"(
    signature_def { key: "late" value {
      inputs { key: "age" value { dtype: DT_INT64 tensor_shape { dim { size: 1 } } } }
      inputs { key: "item" value { dtype: DT_FLOAT
        tensor_shape { dim { size: -1 } dim { size: 3 } dim { size: -1 } } } }
      inputs { key: "now" value { dtype: DT_STRING tensor_shape {} } }
      outputs { key: "score" value { dtype: DT_FLOAT tensor_shape { unknown_rank: true } } } } }
    signature_def { key: "__saved_model_init_op" value {} })");
  const std::string html = SignaturesSection({ModelSnapshot{"m", "/models/m", {version}}});
  EXPECT_THAT(html, HasSubstr("m version 3: 3 inputs, 1 of them the user&#39;s, 1 output"));
  EXPECT_THAT(html, HasSubstr("<td>age</td><td>int64</td><td>[1]</td><td>1: the user</td>"));
  EXPECT_THAT(html, HasSubstr("<td>item</td><td>float</td><td>[N, 3, ?]</td><td>1 or N</td>"));
  EXPECT_THAT(html, HasSubstr("<td>now</td><td>string</td><td>[]</td><td>one value</td>"));
  EXPECT_THAT(html, HasSubstr("<td>score</td><td>float</td><td>any</td></tr>"));
  EXPECT_THAT(html, Not(HasSubstr("__saved_model")));
}

TEST(SignaturesSectionTest, SaysSoIfNoVersionServes) {
  EXPECT_THAT(SignaturesSection({}), HasSubstr("No version serves."));
}

TEST(ShadowsSectionTest, IsEmptyWithoutShadowVersions) {
  EXPECT_EQ(ShadowsSection(shadow::Shadows({}, nullptr)), "");
}

TEST(ShadowsSectionTest, ARowForEachOutputAndWhatDidNotRun) {
  shadow::ShadowVersion version;
  version.spec.name = "m";
  shadow::Shadows shadows({{version}}, nullptr);
  const shadow::Versions versions{"m", 3, 4};
  const shadow::Versions broken{"m", 3, 5};
  shadows.counts().CountCompared(versions, {{{"<score>", 0.25, true}}, false});
  shadows.counts().CountCompared(versions, {{{"<score>", 0.5, false}}, false});
  shadows.counts().CountFailed(broken, Internal("<script>"));
  shadows.counts().CountNotRun("m", shadow::NotRun::kBusy);
  const std::string html = ShadowsSection(shadows);
  EXPECT_THAT(html, HasSubstr("<td>&lt;score&gt;</td><td class=\"number\">0.5</td>"
                              "<td class=\"number\">50 %</td><td></td>"));
  EXPECT_THAT(html, HasSubstr("<td>–</td><td class=\"number\">–</td><td class=\"number\">–</td>"
                              "<td>&lt;script&gt;</td>"));
  EXPECT_THAT(html, HasSubstr("m: not run: 1 busy"));
}

TEST(ShadowsSectionTest, AnInfiniteDifferenceIsOneForPrometheusToo) {
  shadow::Shadows shadows({}, nullptr);
  shadows.counts().CountCompared({"m", 3, 4}, {{{"tag", INFINITY, std::nullopt}}, false});
  metrics::TextWriter writer;
  WriteShadows(shadows, &writer);
  EXPECT_THAT(writer.text(),
              HasSubstr("shadow_largest_difference{model_name=\"m\",live_version=\"3\","
                        "shadow_version=\"4\",output=\"tag\"} inf\n"));
}

}  // namespace
}  // namespace colcast::http
