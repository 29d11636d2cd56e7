#include "server/engine/program/make_programs.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace colcast::engine {
namespace {

constexpr char kLate[] = "_late";
constexpr char kExact[] = "_exact";
constexpr char kPair[] = "_pair";

class Maker {
 public:
  Maker(const SignaturesByName& signatures, const SignatureMap& declared,
        const StateCaches& memories, const Options& options)
      : signatures_(signatures), declared_(declared), memories_(memories), options_(options) {}

  ProgramsByName Make(const std::vector<RecordedSignatures>& records) {
    // Late ones first: others refer to them.
    for (const RecordedSignatures& recorded : WithLateOnes(records)) AddLateAndWhole(recorded);
    for (const auto& [name, signature] : signatures_) {
      if (made_.count(name) == 0) Add(name, {});
    }
    return std::move(made_);
  }

 private:
  const Signature* Find(const std::string& name) const {
    const auto found = signatures_.find(name);
    return found == signatures_.end() ? nullptr : found->second.get();
  }

  // The records of late signatures. Those of models that were exported before anything was recorded
  // are known by their names.
  std::vector<RecordedSignatures> WithLateOnes(
      const std::vector<RecordedSignatures>& records) const {
    std::map<std::string, RecordedSignatures> by_columnar;
    for (const auto& [late, signature] : signatures_) {
      if (!absl::EndsWith(late, kLate)) continue;
      const std::string columnar(absl::StripSuffix(late, kLate));
      by_columnar[columnar].columnar = columnar;
    }
    for (const RecordedSignatures& recorded : records) {
      const auto found = by_columnar.find(recorded.columnar);
      if (found != by_columnar.end()) found->second = recorded;
    }
    std::vector<RecordedSignatures> with_late;
    for (auto& [columnar, recorded] : by_columnar) with_late.push_back(std::move(recorded));
    return with_late;
  }

  void AddLateAndWhole(const RecordedSignatures& recorded) {
    const std::string& columnar = recorded.columnar;
    const Signature& late = *Find(columnar + kLate);
    const Signature* const whole = Find(columnar);
    Programs::Others of_late;
    of_late.stages = MakeStages(recorded, late);
    if (whole == nullptr || whole->output_aliases() != late.output_aliases()) {
      Add(columnar + kLate, std::move(of_late));
      return;
    }
    // Each of the two has its own way with an index: columnar is exact.
    of_late.indexed = MakeIndexed(recorded, columnar + kLate, *whole,
                                  IndexedRequests::Gives::kRequestPerUser, of_late.stages.get());
    Add(columnar + kLate, std::move(of_late));
    Programs::Others of_whole;
    of_whole.indexed =
        MakeIndexed(recorded, columnar, *whole, IndexedRequests::Gives::kOneRun, nullptr);
    const Programs& late_programs = *made_.at(columnar + kLate);
    if (late_programs.computes_users_once()) of_whole.joined = &late_programs;
    Add(columnar, std::move(of_whole));
  }

  // With the programs that need nothing but the signature and its record.
  void Add(const std::string& name, Programs::Others others) {
    const Signature& signature = *Find(name);
    const std::string exact_name = name + kExact;
    const Signature* const exact = Find(exact_name);
    if (exact != nullptr) others.exact = ExactProgram::Create(signature, exact_name, *exact);
    const RowRecord& record = signature.record();
    if (record.independent && record.any_rounding && !record.late) {
      others.rows = std::make_unique<RowCache>(&signature, memories_);
    }
    made_[name] = std::make_unique<Programs>(name, signature, std::move(others));
  }

  std::unique_ptr<StagedProgram> MakeStages(const RecordedSignatures& recorded,
                                            const Signature& late) const {
    const std::string& columnar = recorded.columnar;
    StageSignatures stages{&late, {}, Find(columnar + kPair), recorded.many_users_per_run};
    for (const std::string& domain : recorded.stages) {
      stages.domains.emplace_back(domain, Find(columnar + "_" + domain));
    }
    return StagedProgram::Create(stages, memories_);
  }

  std::unique_ptr<IndexedRequests> MakeIndexed(const RecordedSignatures& recorded,
                                               const std::string& name, const Signature& whole,
                                               IndexedRequests::Gives gives,
                                               StagedProgram* stages) const {
    std::vector<DomainColumns> domains;
    const auto add = [&](const std::string& domain) {
      const auto found = recorded.columns.find(domain);
      const bool is_there = domain != "user" && found != recorded.columns.end();
      domains.push_back({domain, is_there ? found->second : std::set<std::string>()});
    };
    add("user");
    for (const auto& [alias, info] : declared_.at(recorded.columnar + kLate).inputs()) {
      const auto& shape = info.tensor_shape();
      const bool once = shape.dim_size() > 0 && shape.dim(0).size() == 1;
      if (once) domains[0].columns.insert(alias);
    }
    // Those of the stages have their numbers.
    std::set<std::string> stages_have(recorded.stages.begin(), recorded.stages.end());
    for (const std::string& domain : recorded.stages) {
      if (domain != "user") add(domain);
    }
    for (const auto& [domain, columns] : recorded.columns) {
      if (domain != "user" && stages_have.count(domain) == 0) add(domain);
    }
    return IndexedRequests::Create(declared_.at(name), whole, gives, stages, std::move(domains),
                                   options_);
  }

  const SignaturesByName& signatures_;
  const SignatureMap& declared_;
  const StateCaches& memories_;
  const Options& options_;
  ProgramsByName made_;
};

}  // namespace

ProgramsByName MakePrograms(const SignaturesByName& signatures, const SignatureMap& declared,
                            const std::vector<RecordedSignatures>& records,
                            const StateCaches& memories, const Options& options) {
  return Maker(signatures, declared, memories, options).Make(records);
}

}  // namespace colcast::engine
