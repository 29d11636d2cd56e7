// A small model with stages, and requests to it, for the tests of this folder.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_TESTING_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_TESTING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/program/make_programs.h"
#include "server/engine/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/math_ops.h"

namespace colcast::engine {

// Columns of one float per row.
using Columns = std::vector<std::pair<std::string, std::vector<float>>>;

inline std::string MessageOf(const Columns& columns, const std::vector<int64_t>& row_to_user = {}) {
  std::string message;
  for (const auto& [name, values] : columns) message += FloatInput(name, {values.size()}, values);
  if (!row_to_user.empty()) message += Int64Input("row_to_user", row_to_user);
  return message;
}

// A model as an export writes it, made from its graph and its declared signatures.
class ExportedModel {
 public:
  const Programs& programs(const std::string& signature = "columnar_late") const {
    return *programs_.at(signature);
  }
  const Signature& signature(const std::string& name) const { return *signatures_.at(name); }
  const SignatureMap& declared() const { return declared_; }

  int64_t Ran(const std::string& program, const std::string& outcome) const {
    for (const ProgramStats& stats : programs().counts()) {
      if (stats.program == program && stats.outcome == outcome) return stats.count;
    }
    return 0;
  }

 protected:
  void SetGraph(const tensorflow::Scope& scope) { session_ = SessionOf(scope); }

  // Makes the programs of the declared signatures; caches no states if `state_bytes` is 0.
  void Make(RecordedSignatures recorded, int64_t state_bytes) {
    recorded.columnar = "columnar";
    for (const auto& [name, declared] : declared_) {
      RowRecord& row = recorded.rows[name];
      row.recorded = true;
      row.any_rounding = row.late = name != "columnar";
      signatures_[name] = *Signature::Create(declared, session_.get(), options_, row);
    }
    if (state_bytes > 0) {
      memories_.user = std::make_unique<states::StateCache>(state_bytes);
      memories_.item = std::make_unique<states::StateCache>(state_bytes);
    }
    programs_ = MakePrograms(signatures_, declared_, {recorded}, memories_, options_);
  }

  SignatureMap declared_;

 private:
  const Options options_;
  std::unique_ptr<tensorflow::Session> session_;
  SignaturesByName signatures_;
  StateCaches memories_;
  ProgramsByName programs_;
};

// The signatures that the exporter writes for score = 10 * user + item + 1000 * shop + candidate:
// columnar, columnar_late, the stages of three domains and the last one. The user's stage refuses
// NaN; all others accept it. The last stage adds a million to the score of a candidate whose user
// has a wrong row number.
class StagedModel : public ExportedModel {
 public:
  struct Settings {
    int64_t state_bytes = 1 << 20;  // no states are cached if 0
    bool many_users_per_run = true;
    bool independent = true;  // whether the items' stage has independent rows
    std::string left_out;     // a signature that the model lacks
  };

  explicit StagedModel(const Settings& settings) {
    BuildSession();
    DeclareAll(settings.left_out);
    RecordedSignatures recorded;
    recorded.stages = {"user", "item", "shop"};
    recorded.columns["shop"] = {"shop"};
    recorded.many_users_per_run = settings.many_users_per_run;
    for (const auto& [name, signature] : declared_) {
      recorded.rows[name].independent = settings.independent || name != "columnar_item";
    }
    Make(recorded, settings.state_bytes);
  }

  absl::Status Run(const std::string& message, std::vector<float>* scores,
                   const std::string& signature = "columnar_late") const {
    RunResult result;
    absl::Status status = RunRequest(programs(signature), message, &result);
    if (!status.ok()) return status;
    *scores = ElementsOf(result.tensors[0]);
    return status;
  }

  std::vector<float> Scores(const std::string& message,
                            const std::string& signature = "columnar_late") const {
    std::vector<float> scores;
    const absl::Status status = Run(message, &scores, signature);
    EXPECT_TRUE(status.ok()) << status;
    return scores;
  }

  // Counts such as "stages ok 2", one per program and outcome.
  std::vector<std::string> Ran(const std::string& signature = "columnar_late") const {
    std::vector<std::string> ran;
    for (const ProgramStats& stats : programs(signature).counts()) {
      ran.push_back(absl::StrCat(stats.program, " ", stats.outcome, " ", stats.count));
    }
    return ran;
  }

  states::StoreStats Store(const std::string& name) const {
    for (const StoreStats& stats : programs().stores()) {
      if (stats.counted.store == name) return stats.counted;
    }
    return {};
  }

 private:
  void BuildSession() {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    const auto input = [&](const std::string& name, tensorflow::DataType dtype) {
      return ops::Placeholder(scope.WithOpName(name), dtype);
    };
    const auto user = input("user", tensorflow::DT_FLOAT);
    const auto item = input("item", tensorflow::DT_FLOAT);
    const auto shop = input("shop", tensorflow::DT_FLOAT);
    const auto candidate = input("candidate", tensorflow::DT_FLOAT);
    const auto weighted_user = ops::Multiply(scope, user, 10.0f);
    const auto weighted_shop = ops::Multiply(scope, shop, 1000.0f);
    ops::CheckNumerics(scope.WithOpName("of_user"), weighted_user, "the user's stage refuses it");
    ops::Identity(scope.WithOpName("of_item"), item);
    ops::Identity(scope.WithOpName("of_shop"), weighted_shop);
    const auto add = [&](const std::string& name, const std::vector<tensorflow::Output>& parts) {
      ops::AddN(scope.WithOpName(name), parts);
    };
    const auto once = [&](const tensorflow::Output& one) {
      return tensorflow::Output(ops::Add(scope, one, ops::ZerosLike(scope, item)));
    };
    add("score", {once(weighted_user), item, once(weighted_shop), candidate});
    const auto index_of = [&](const std::string& domain) {
      return input("row_to_" + domain, tensorflow::DT_INT64);
    };
    const auto gathered = [&](const std::string& domain, const tensorflow::Output& index) {
      const auto state = input(domain + "_state", tensorflow::DT_FLOAT);
      return tensorflow::Output(ops::GatherV2(scope, state, index, 0));
    };
    const auto user_of = index_of("user");
    const auto number =
        ops::GatherV2(scope, input("user_state/row", tensorflow::DT_INT64), user_of, 0);
    const auto wrong =
        ops::Cast(scope, ops::NotEqual(scope, number, user_of), tensorflow::DT_FLOAT);
    add("pair_score",
        {gathered("user", user_of), input("item_state", tensorflow::DT_FLOAT),
         gathered("shop", index_of("shop")), candidate, ops::Multiply(scope, wrong, 1e6f)});
    SetGraph(scope);
  }

  void DeclareAll(const std::string& left_out) {
    const auto declare = [this](const std::string& name, const std::vector<std::string>& inputs,
                                const std::string& alias, const std::string& output) {
      tensorflow::SignatureDef& signature = declared_[name];
      for (const std::string& input : inputs) {
        const bool is_state = absl::EndsWith(input, "_state");
        tensorflow::TensorInfo& info =
            (*signature.mutable_inputs())[is_state ? input + "/0" : input];
        info = Info(input);
        if (absl::EndsWith(input, "/row")) info.set_dtype(tensorflow::DT_INT64);
      }
      (*signature.mutable_outputs())[alias] = Info(output);
    };
    const std::vector<std::string> features = {"user", "item", "shop", "candidate"};
    declare("columnar", features, "score", "score");
    declare("columnar_late", features, "score", "score");
    (*declared_["columnar_late"].mutable_inputs())["user"] = Info("user", 1);
    for (const char* const domain : {"user", "item", "shop"}) {
      declare(absl::StrCat("columnar_", domain), {domain}, absl::StrCat(domain, "_state/0"),
              absl::StrCat("of_", domain));
    }
    declare("columnar_pair",
            {"user_state", "user_state/row", "row_to_user", "item_state", "shop_state",
             "row_to_shop", "candidate"},
            "score", "pair_score");
    declared_.erase(left_out);
  }
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_TESTING_H_
