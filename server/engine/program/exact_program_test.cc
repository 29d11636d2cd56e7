#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/engine/program/whole_program.h"
#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

// score = user + item, and score_exact, whose inputs have the names that the exporter gives them.
class ExactProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    for (const std::string prefix : {"", "score_exact/inputs/", "elsewhere/"}) {
      const auto user = ops::Placeholder(scope.WithOpName(prefix + "user"), tensorflow::DT_FLOAT);
      const auto item = ops::Placeholder(scope.WithOpName(prefix + "item"), tensorflow::DT_FLOAT);
      ops::Add(scope.WithOpName(prefix + "score"), user, item);
    }
    session_ = SessionOf(scope);
    whole_ = Declare("", -1);
  }

  std::unique_ptr<Signature> Declare(const std::string& prefix, int64_t user_rows) {
    tensorflow::SignatureDef declared;
    (*declared.mutable_inputs())["user"] = Info(prefix + "user", user_rows);
    (*declared.mutable_inputs())["item"] = Info(prefix + "item");
    (*declared.mutable_outputs())["score"] = Info(prefix + "score");
    return *Signature::Create(declared, session_.get(), {});
  }

  // Whether a request fits the exact signature of `whole_`.
  bool Fits(const std::string& message) {
    const auto exact = Declare("score_exact/inputs/", 1);
    const auto program = ExactProgram::Create(*whole_, "score_exact", *exact);
    EXPECT_NE(program, nullptr);
    DecodedRequest request;
    EXPECT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
    ReceivedRequest received;
    EXPECT_TRUE(whole_->Receive(request, &received).ok());
    return program->Plan(&received);
  }

  std::unique_ptr<tensorflow::Session> session_;
  std::unique_ptr<Signature> whole_;
};

TEST_F(ExactProgramTest, TheExactSignatureTakesAColumnOnce) {
  const auto create = [&](const std::string& prefix, int64_t user_rows) {
    return ExactProgram::Create(*whole_, "score_exact", *Declare(prefix, user_rows));
  };
  EXPECT_NE(create("score_exact/inputs/", 1), nullptr);
  EXPECT_EQ(create("score_exact/inputs/", -1), nullptr);  // no input takes one row
  EXPECT_EQ(create("elsewhere/", 1), nullptr);            // another signature's inputs
  EXPECT_EQ(create("score_exact/inputs/", 2), nullptr);
}

TEST_F(ExactProgramTest, RequestsThatSendTheUserOnceFit) {
  const std::string items = FloatInput("item", {2}, {1, 2});
  EXPECT_TRUE(Fits(FloatInput("user", {1}, {1}) + items));
  EXPECT_FALSE(Fits(FloatInput("user", {2}, {1, 1}) + items));
  // One candidate: nothing to gain.
  EXPECT_FALSE(Fits(FloatInput("user", {1}, {1}) + FloatInput("item", {1}, {1})));
  EXPECT_FALSE(Fits(FloatInput("other", {1}, {1}) + items));
}

}  // namespace
}  // namespace colcast::engine
