#include "server/engine/program/make_programs.h"

#include <utility>

#include "server/engine/program/domains.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/program/whole_program.h"

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
    for (const RecordedSignatures& recorded : records) {
      if (Find(recorded.columnar + kLate) != nullptr) {
        AddLateAndWhole(recorded);
      } else if (const Signature* const whole = Find(recorded.columnar); whole != nullptr) {
        Programs::Others others;
        others.exact = MakeExact(recorded.columnar, *whole);
        Add(recorded.columnar, std::move(others));
      }
    }
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

  void AddLateAndWhole(const RecordedSignatures& recorded) {
    const std::string& columnar = recorded.columnar;
    const std::string late_name = columnar + kLate;
    const Signature& late = *Find(late_name);
    const Signature* const whole = Find(columnar);
    const bool is_same = whole != nullptr && whole->output_aliases() == late.output_aliases();
    Programs::Others of_late;
    of_late.domains = MakeDomains(recorded, late_name, is_same ? whole : nullptr, true);
    of_late.stages = MakeStages(recorded, late, *of_late.domains);
    if (of_late.stages == nullptr) {
      of_late.domains = MakeDomains(recorded, late_name, is_same ? whole : nullptr, false);
    }
    // With an index, columnar answers like one run, columnar_late like one request per user.
    of_late.gathered = MakeGathered(whole, *of_late.domains, AnswerMode::kRequestPerUser);
    Add(late_name, std::move(of_late));
    if (whole == nullptr) return;
    Programs::Others of_whole;
    of_whole.exact = MakeExact(columnar, *whole);
    of_whole.domains = MakeDomains(recorded, columnar, is_same ? whole : nullptr, false);
    of_whole.gathered = MakeGathered(whole, *of_whole.domains, AnswerMode::kOneRun);
    Add(columnar, std::move(of_whole));
  }

  // Adds `others` and the rows program, which needs only the signature and its record.
  void Add(const std::string& name, Programs::Others others) {
    const Signature& signature = *Find(name);
    const RowRecord& record = signature.record();
    if (record.independent && record.any_rounding && !record.late) {
      others.rows = MakeRowsProgram(&signature, memories_.item.get());
      others.exact = nullptr;
    }
    made_[name] = std::make_unique<Programs>(name, signature, std::move(others));
  }

  std::unique_ptr<ExactProgram> MakeExact(const std::string& columnar,
                                          const Signature& whole) const {
    const std::string name = columnar + kExact;
    const Signature* const exact = Find(name);
    return exact == nullptr ? nullptr : ExactProgram::Create(whole, name, *exact);
  }

  static std::unique_ptr<Program> MakeGathered(const Signature* columnar, const Domains& domains,
                                               AnswerMode mode) {
    return domains.take_index() ? MakeGatheredProgram(columnar, &domains, mode) : nullptr;
  }

  std::unique_ptr<StagedProgram> MakeStages(const RecordedSignatures& recorded,
                                            const Signature& late, const Domains& domains) const {
    const std::string& columnar = recorded.columnar;
    StageSignatures stages{&late, {}, Find(columnar + kPair), recorded.many_users_per_run};
    for (const std::string& domain : recorded.stages) {
      stages.domains.emplace_back(domain, Find(columnar + "_" + domain));
    }
    return StagedProgram::Create(stages, domains, memories_);
  }

  std::unique_ptr<Domains> MakeDomains(const RecordedSignatures& recorded, const std::string& name,
                                       const Signature* columnar, bool with_stages) const {
    std::vector<DomainColumns> domains;
    const auto add = [&](const std::string& domain, const Signature* stage) {
      const auto found = recorded.columns.find(domain);
      const bool is_there = domain != "user" && found != recorded.columns.end();
      domains.push_back({domain, is_there ? found->second : std::set<std::string>(), stage});
    };
    // Domains with stages come first, in the order of the stages.
    const std::set<std::string> stages_have(recorded.stages.begin(), recorded.stages.end());
    if (recorded.stages.empty() || recorded.stages[0] != "user") add("user", nullptr);
    for (const std::string& domain : recorded.stages) {
      add(domain, with_stages ? Find(recorded.columnar + "_" + domain) : nullptr);
    }
    for (const auto& [domain, columns] : recorded.columns) {
      if (domain != "user" && stages_have.count(domain) == 0) add(domain, nullptr);
    }
    for (const auto& [alias, info] : declared_.at(recorded.columnar + kLate).inputs()) {
      const auto& shape = info.tensor_shape();
      const bool once = shape.dim_size() > 0 && shape.dim(0).size() == 1;
      if (once) domains[0].columns.insert(alias);
    }
    return std::make_unique<Domains>(declared_.at(name), std::move(domains), columnar, options_);
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
