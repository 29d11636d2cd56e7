#include "server/engine/rewrites/signature_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/manip_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {
namespace {

namespace fs = std::filesystem;
namespace ops = tensorflow::ops;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A model whose score is its item, by a long way, with two other forms: the item itself, and what
// is close to it.
class SignatureChooserTest : public ::testing::Test {
 protected:
  SignatureChooserTest() : folder_(fs::path(::testing::TempDir()) / "signature_chooser_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    const auto scope = tensorflow::Scope::NewRootScope();
    const auto item = ops::Placeholder(scope.WithOpName("item"), tensorflow::DT_FLOAT);
    tensorflow::Output slow = item;
    for (int i = 0; i < 40; ++i) slow = ops::Roll(scope, ops::Roll(scope, slow, 1, 0), -1, 0);
    ops::Identity(scope.WithOpName("original"), slow);
    ops::Identity(scope.WithOpName("same"), item);
    ops::Multiply(scope.WithOpName("close"), item, 1.001f);
    ops::Multiply(scope.WithOpName("thousandfold"), item, 1000.0f);
    ops::Minimum(scope.WithOpName("at_most_10"), item, 10.0f);
    const auto runs = ops::VarHandleOp(scope, tensorflow::DT_INT64, {});
    const auto one = ops::Const(scope, int64_t{1});
    ops::AssignVariableOp(scope.WithOpName("init"), runs, ops::Const(scope, int64_t{0}));
    ops::ReadVariableOp(scope.WithOpName("runs"), runs, tensorflow::DT_INT64);
    const auto count = ops::AssignAddVariableOp(scope, runs, one);
    ops::Identity(scope.WithOpName("counted").WithControlDependencies({count.operation}), item);
    tensorflow::GraphDef graph;
    TF_CHECK_OK(scope.ToGraphDef(&graph));
    session_.reset(tensorflow::NewSession(tensorflow::SessionOptions()));
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->Run({}, {}, {"init"}, nullptr));
    options_.graph_choices_directory = folder_;
    options_.graph_measuring_ms = 20'000;  // as many rounds as there may be
  }
  ~SignatureChooserTest() override { fs::remove_all(folder_); }

  static tensorflow::SignatureDef Declared(const std::string& output,
                                           const std::string& input_alias = "item",
                                           const std::string& output_alias = "score") {
    tensorflow::SignatureDef declared;
    auto& input = (*declared.mutable_inputs())[input_alias];
    auto& computed = (*declared.mutable_outputs())[output_alias];
    for (auto* const info : {&input, &computed}) {
      info->set_dtype(tensorflow::DT_FLOAT);
      info->mutable_tensor_shape()->add_dim()->set_size(-1);
    }
    input.set_name("item:0");
    computed.set_name(output + ":0");
    return declared;
  }

  void AddForm(const std::string& output, bool exact, double tolerance_share = 1) {
    AddForm("scores", output, Declared(output), exact, tolerance_share);
  }

  void AddForm(const std::string& signature, const std::string& name,
               const tensorflow::SignatureDef& declared, bool exact, double tolerance_share = 1) {
    RewrittenSignature& form = forms_[signature].forms.emplace_back();
    form.name = name;
    form.says = "it is " + name;
    form.exact = exact;
    if (!exact) form.loses = {name};
    form.tolerance_share = tolerance_share;
    form.declared = declared;
  }

  // The log's words of a stage with the forms of the scores, which are close to them.
  std::string LoadStage() {
    if (forms_.count("states") == 0) forms_["states"] = forms_["scores"];
    SignatureChooser chooser(folder_, tags_, options_);
    chooser.Use(Wanted(chooser), session_.get());
    chooser.SetStages({{"states", "scores"}});
    std::string said;
    for (const char* const name : {"scores", "states"}) {
      auto original = Signature::Create(Declared("original"), session_.get(), options_);
      TF_CHECK_OK((*original)->Prepare());
      SignatureChooser::Chosen chosen = chooser.TakeKept(name, **original);
      if (chosen.why.empty()) chosen = chooser.Choose(name, **original);
      said = chosen.why;
      is_rewritten_ = chosen.signature != nullptr;
    }
    TF_CHECK_OK(chooser.Keep());
    return said;
  }

  // The forms that are made, as a model does.
  RewrittenSignatures Wanted(const SignatureChooser& chooser) const {
    RewrittenSignatures wanted;
    for (const auto& [name, made] : forms_) {
      const WantedForms want = chooser.Wants(name);
      if (!want.any) continue;
      SignatureForms& kept = wanted[name];
      for (const RewrittenSignature& form : made.forms) {
        if (want.only.empty() || want.only == form.name) kept.forms.push_back(form);
      }
    }
    return wanted;
  }

  // What is chosen at one load: the score of 1000.
  float Load() {
    SignatureChooser chooser(folder_, tags_, options_);
    chooser.Use(Wanted(chooser), session_.get());
    auto original = Signature::Create(Declared("original"), session_.get(), options_);
    TF_CHECK_OK((*original)->Prepare());
    SignatureChooser::Chosen chosen = chooser.TakeKept("scores", **original);
    if (chosen.why.empty()) chosen = chooser.Choose("scores", **original);
    why_ = chosen.why;
    TF_CHECK_OK(chooser.Keep());
    const Signature& served = chosen.signature == nullptr ? **original : *chosen.signature;
    tensorflow::Tensor feed(tensorflow::DT_FLOAT, {1});
    feed.flat<float>()(0) = 1000;
    RunResult result;
    TF_CHECK_OK(served.RunFeeds({feed}, served.all_outputs(), &result));
    return result.tensors[0].flat<float>()(0);
  }

  // How often the form "counted" ran.
  int64_t Runs() const {
    std::vector<tensorflow::Tensor> outputs;
    TF_CHECK_OK(session_->Run({}, {"runs:0"}, {}, &outputs));
    return outputs[0].scalar<int64_t>()();
  }

  const fs::path folder_;
  std::vector<std::string> tags_ = {"serve"};
  Options options_;
  RewrittenSignatures forms_;
  std::string why_;
  bool is_rewritten_ = false;
  std::unique_ptr<tensorflow::Session> session_;
};

TEST_F(SignatureChooserTest, WithoutFormsThereIsNothingToSay) {
  EXPECT_EQ(Load(), 1000);
  EXPECT_EQ(why_, "");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(SignatureChooserTest, AFormThatComputesOtherThanItSaysIsNotServed) {
  AddForm("close", /*exact=*/true);
  EXPECT_EQ(Load(), 1000);
  EXPECT_THAT(why_, HasSubstr("it is close (not kept: not proved: a generated request of"));
}

TEST_F(SignatureChooserTest, ACloseFormIsServedWithinTheTolerance) {
  AddForm("close", /*exact=*/false);
  EXPECT_FLOAT_EQ(Load(), 1001);
  options_.graph_tolerance = 0.0001;
  options_.graph_optimization = GraphOptimization::kFast;  // another choice than what is kept
  EXPECT_EQ(Load(), 1000);
  EXPECT_THAT(why_, HasSubstr("not proved: differences up to 0.001"));
}

TEST_F(SignatureChooserTest, AFormKeepsToItsShareOfTheTolerance) {
  AddForm("close", /*exact=*/false, /*tolerance_share=*/0.5);
  options_.graph_optimization = GraphOptimization::kFast;
  options_.graph_tolerance = 0.0015;  // it is 0.001 off
  EXPECT_EQ(Load(), 1000);
  EXPECT_THAT(why_, HasSubstr("of at most 0.00075"));
  options_.graph_tolerance = 0.0025;
  EXPECT_FLOAT_EQ(Load(), 1001);
}

TEST_F(SignatureChooserTest, AFormThatLosesWhatItMayNotIsNotServed) {
  AddForm("close", /*exact=*/false);
  forms_["scores"].forms[0].why_not = "a rank depends on it";
  EXPECT_EQ(Load(), 1000);
  EXPECT_EQ(why_, "it is close (not kept: not proved: a rank depends on it)");
}

TEST_F(SignatureChooserTest, AStageLosesWhatItsWholeLoses) {
  AddForm("close", /*exact=*/false);
  options_.graph_optimization = GraphOptimization::kFast;
  EXPECT_THAT(LoadStage(), HasSubstr("differences up to 0.001"));
  EXPECT_TRUE(is_rewritten_);
  EXPECT_THAT(LoadStage(), EndsWith("found at an earlier load"));
  EXPECT_TRUE(is_rewritten_);
}

TEST_F(SignatureChooserTest, AStageLosesNothingThatItsWholeDoesNot) {
  AddForm("close", /*exact=*/false, /*tolerance_share=*/0.5);
  AddForm("same", /*exact=*/true);
  options_.graph_optimization = GraphOptimization::kFast;
  options_.graph_tolerance = 0.0015;
  forms_["states"] = forms_["scores"];
  forms_["states"].forms[0].tolerance_share = 1;  // its states are close enough
  EXPECT_THAT(LoadStage(), StartsWith("it is close (not tried: \"scores\", of which it is a "
                                      "stage, is not served so); it is same ("));
  EXPECT_TRUE(is_rewritten_);
  EXPECT_THAT(LoadStage(), EndsWith("found at an earlier load"));
}

TEST_F(SignatureChooserTest, AKeptStageLosesNothingThatItsWholeIsNotServedWithNow) {
  AddForm("close", /*exact=*/false);
  options_.graph_optimization = GraphOptimization::kFast;
  LoadStage();
  ASSERT_TRUE(is_rewritten_);
  (*forms_["scores"].forms[0].declared.mutable_outputs())["score"].set_name("missing:0");
  EXPECT_THAT(LoadStage(), StartsWith("as it was saved: \"scores\", of which it is a stage, is not "
                                      "served like this; it is close"));
  EXPECT_FALSE(is_rewritten_);
}

TEST_F(SignatureChooserTest, AStageIsNotKeptUnlessItsWholeIs) {
  AddForm("same", /*exact=*/true);
  forms_["states"] = forms_["scores"];
  const auto original = Signature::Create(Declared("original"), session_.get(), options_);
  TF_CHECK_OK((*original)->Prepare());
  for (int load = 0; load < 2; ++load) {
    SignatureChooser chooser(folder_, tags_, options_);
    chooser.Use(Wanted(chooser), session_.get());
    chooser.SetStages({{"states", "scores"}});
    EXPECT_THAT(chooser.TakeKept("states", **original).why, IsEmpty());
    EXPECT_THAT(chooser.Choose("states", **original).why, StartsWith("it is same ("));
    TF_CHECK_OK(chooser.Keep());
  }
}

TEST_F(SignatureChooserTest, WhatWasChosenIsNotMeasuredAgain) {
  AddForm("same", /*exact=*/true);
  Load();
  const std::string first = why_;
  EXPECT_THAT(first, HasSubstr("the same bits in"));
  Load();
  EXPECT_EQ(why_, first + "; found at an earlier load");
}

TEST_F(SignatureChooserTest, WhatWasChosenRunsOnceBeforeItServes) {
  AddForm("counted", /*exact=*/true);
  Load();
  const int64_t before = Runs();
  Load();
  ASSERT_THAT(why_, EndsWith("found at an earlier load"));
  EXPECT_EQ(Runs(), before + 2);  // the other one is the request
}

TEST_F(SignatureChooserTest, WhatReadsStatesIsTriedOnThoseThatStagesCompute) {
  const auto stage = Declared("thousandfold", "item", "user_state/0");
  const auto last = Declared("original", "user_state/0");
  AddForm("stage", "same", stage, /*exact=*/true);
  AddForm("last", "at_most_10", Declared("at_most_10", "user_state/0"), /*exact=*/true);
  SignatureChooser chooser(folder_, tags_, options_);
  chooser.Use(Wanted(chooser), session_.get());
  for (const auto& [name, declared] : {std::pair("stage", stage), std::pair("last", last)}) {
    const auto original = Signature::Create(declared, session_.get(), options_);
    TF_CHECK_OK((*original)->Prepare());
    why_ = chooser.Choose(name, **original).why;
  }
  EXPECT_THAT(why_, HasSubstr("it is at_most_10 (not kept: not proved"));
}

TEST_F(SignatureChooserTest, OtherThreadsAreMeasuredByThemselves) {
  AddForm("same", /*exact=*/true);
  Load();
  options_.inter_op_parallelism = 2;
  Load();
  EXPECT_THAT(why_, Not(EndsWith("found at an earlier load")));
}

TEST_F(SignatureChooserTest, AnotherMetaGraphOfTheModelIsMeasuredByItself) {
  AddForm("same", /*exact=*/true);
  Load();
  tags_ = {"serve", "gpu"};
  Load();
  EXPECT_THAT(why_, Not(HasSubstr("found at an earlier load")));
  tags_ = {"gpu", "serve"};  // the same set
  Load();
  EXPECT_THAT(why_, EndsWith("found at an earlier load"));
}

TEST_F(SignatureChooserTest, OnlyTheFormThatWasChosenIsMadeAgain) {
  AddForm("close", /*exact=*/true);
  AddForm("same", /*exact=*/true);
  EXPECT_EQ(Wanted(SignatureChooser(folder_, tags_, options_)).at("scores").forms.size(), 2u);
  Load();
  const WantedForms wanted = SignatureChooser(folder_, tags_, options_).Wants("scores");
  EXPECT_TRUE(wanted.any);
  EXPECT_EQ(wanted.only, "same");
}

TEST_F(SignatureChooserTest, FormsOfASignatureThatIsNotServedAreNotMade) {
  AddForm("same", /*exact=*/true);
  options_.unserved_signatures = {"scores"};
  EXPECT_FALSE(SignatureChooser(folder_, tags_, options_).Wants("scores").any);
}

TEST_F(SignatureChooserTest, WhatThereWasNoTimeToTryIsMeasuredAgain) {
  AddForm("same", /*exact=*/true);
  const RewrittenSignatures alone = forms_;
  for (int i = 0; i < 40'000; ++i) forms_[std::to_string(i)] = {};  // they share the time
  EXPECT_EQ(Load(), 1000);
  EXPECT_THAT(why_, HasSubstr("not kept for the next load"));
  forms_ = alone;
  Load();
  EXPECT_THAT(why_, HasSubstr("the same bits in"));
  EXPECT_THAT(why_, Not(HasSubstr("found at an earlier load")));
  Load();
  EXPECT_THAT(why_, EndsWith("found at an earlier load"));
}

TEST_F(SignatureChooserTest, WithoutMeasuringExactFormsAreServed) {
  AddForm("same", /*exact=*/true);
  AddForm("close", /*exact=*/false);
  options_.graph_measuring_ms = 0;
  EXPECT_EQ(Load(), 1000);
  EXPECT_EQ(why_, "it is same (not measured)");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(SignatureChooserTest, AFormThatCannotBePreparedIsNotServed) {
  AddForm("no_such_node", /*exact=*/true);
  EXPECT_EQ(Load(), 1000);
  EXPECT_THAT(why_, HasSubstr("no_such_node"));
}

}  // namespace
}  // namespace colcast::engine
