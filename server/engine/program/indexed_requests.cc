#include "server/engine/program/indexed_requests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/list_columns.h"
#include "server/engine/program/by_user.h"
#include "server/engine/row_index.h"
#include "server/engine/rows.h"
#include "server/engine/wire_column.h"

namespace colcast::engine {
namespace {

using tensorflow::SignatureDef;
using tensorflow::Tensor;

constexpr size_t kUser = 0;

// A signature of some of another's inputs.
void AddInput(const SignatureDef& from, const std::string& alias, SignatureDef* to) {
  (*to->mutable_inputs())[alias] = from.inputs().at(alias);
  const auto found = from.defaults().find(alias);
  if (found != from.defaults().end()) (*to->mutable_defaults())[alias] = found->second;
}

void AddIndex(const std::string& domain, SignatureDef* to) {
  tensorflow::TensorInfo& index = (*to->mutable_inputs())[RowTo(domain)];
  index.set_name(RowTo(domain) + ":0");  // never fed
  index.set_dtype(tensorflow::DT_INT64);
  index.mutable_tensor_shape()->add_dim()->set_size(-1);
}

absl::Status CheckIndex(const std::string& domain, absl::Span<const int64_t> index, int64_t rows) {
  for (size_t row = 0; row < index.size(); ++row) {
    if (index[row] >= 0 && index[row] < rows) continue;
    return absl::InvalidArgumentError(absl::StrCat("input \"", RowTo(domain), "\": row ", row,
                                                   " is ", index[row], ", expected 0 to ", rows - 1,
                                                   ", a row of the ", domain, " columns"));
  }
  return absl::OkStatus();
}

// All candidates. Of none nothing is picked.
std::vector<int64_t> FirstNumbers(int64_t count) {
  std::vector<int64_t> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = i;
  return numbers;
}

}  // namespace

// What came, and what is known of it.
struct IndexedRequests::Sides {
  std::vector<Side> domains;  // by domain
  Side candidates;
  std::vector<Tensor> indices;  // by domain; uninitialized where it has none

  int64_t rows() const { return candidates.plan.plan.rows; }
};

IndexedRequests::IndexedRequests(const SignatureDef& declared, const Signature& signature,
                                 Gives gives, StagedProgram* stages,
                                 std::vector<DomainColumns> domains, const Options& options)
    : declared_(declared),
      signature_(&signature),
      gives_(gives),
      stages_(stages),
      domains_(std::move(domains)),
      options_(options) {
  for (const DomainColumns& domain : domains_) index_names_.push_back(RowTo(domain.name));
}

std::unique_ptr<IndexedRequests> IndexedRequests::Create(const SignatureDef& declared,
                                                         const Signature& signature, Gives gives,
                                                         StagedProgram* stages,
                                                         std::vector<DomainColumns> domains,
                                                         const Options& options) {
  if (domains.empty() || domains[kUser].columns.empty()) return nullptr;
  for (const DomainColumns& domain : domains) {
    if (declared.inputs().contains(RowTo(domain.name))) return nullptr;
  }
  if (signature.inputs().inputs().size() != static_cast<size_t>(declared.inputs_size())) {
    return nullptr;
  }
  for (const DeclaredInput& input : signature.inputs().inputs()) {
    const auto found = declared.inputs().find(input.alias);
    if (found == declared.inputs().end() || found->second.dtype() != input.dtype) return nullptr;
  }
  std::unique_ptr<IndexedRequests> made(
      new IndexedRequests(declared, signature, gives, stages, std::move(domains), options));
  // What every joined run is read with.
  std::vector<bool> of_users(made->domains_.size(), false);
  of_users[kUser] = true;
  made->of_users_ = &made->forms_[of_users];
  return made->MakeForm(of_users, made->of_users_).ok() ? std::move(made) : nullptr;
}

int IndexedRequests::DomainOf(const std::string& input) const {
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (domains_[i].columns.count(input) > 0) return static_cast<int>(i);
  }
  return kCandidates;
}

absl::Status IndexedRequests::MakeForm(std::vector<bool> indexed, Form* form) const {
  std::vector<SignatureDef> sides(domains_.size());
  SignatureDef candidates;
  for (const auto& [alias, info] : declared_.inputs()) {
    const int domain = DomainOf(alias);
    if (domain == kCandidates || !indexed[domain]) {
      AddInput(declared_, alias, &candidates);
      continue;
    }
    AddInput(declared_, alias, &sides[domain]);
    auto& shape = *(*sides[domain].mutable_inputs())[alias].mutable_tensor_shape();
    if (shape.dim_size() > 0) shape.mutable_dim(0)->set_size(-1);
  }
  const SignatureInputs::Limits limits{options_.max_request_rows, options_.max_expanded_bytes};
  const auto add = [&limits](const SignatureDef& side, std::vector<SignatureInputs>* to) {
    absl::StatusOr<SignatureInputs> inputs = SignatureInputs::Create(side, limits);
    if (inputs.ok()) to->push_back(*std::move(inputs));
    return inputs.status();
  };
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (indexed[i]) AddIndex(domains_[i].name, &candidates);
    if (absl::Status status = add(sides[i], &form->domains); !status.ok()) return status;
  }
  if (absl::Status status = add(candidates, &form->candidates); !status.ok()) return status;
  for (const DeclaredInput& input : signature_->inputs().inputs()) {
    const int domain = DomainOf(input.alias);
    const bool apart = domain != kCandidates && indexed[domain];
    const SignatureInputs& side = apart ? form->domains[domain] : form->candidates[0];
    form->places.push_back({apart ? domain : kCandidates, side.Find(input.alias)});
  }
  form->indexed = std::move(indexed);
  return absl::OkStatus();
}

bool IndexedRequests::Take(absl::Span<const ReceivedInput> received) const {
  return std::any_of(received.begin(), received.end(), [this](const ReceivedInput& input) {
    return IsRowIndex(input.alias) &&
           std::find(index_names_.begin(), index_names_.end(), input.alias) != index_names_.end();
  });
}

absl::StatusOr<const IndexedRequests::Form*> IndexedRequests::FormOf(
    absl::Span<const ReceivedInput> received) const {
  std::vector<bool> indexed(domains_.size(), false);
  for (size_t i = 0; i < domains_.size(); ++i) {
    indexed[i] = std::any_of(received.begin(), received.end(), [&](const ReceivedInput& input) {
      return input.alias == index_names_[i];
    });
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [found, is_new] = forms_.try_emplace(indexed);
  if (!is_new) return &found->second;
  if (absl::Status status = MakeForm(indexed, &found->second); !status.ok()) {
    forms_.erase(found);
    return status;
  }
  return &found->second;
}

absl::Status IndexedRequests::Plan(const Form& form, absl::Span<const ReceivedInput> received,
                                   Sides* sides) const {
  sides->domains.resize(domains_.size());
  for (Side& side : sides->domains) side.received.clear();
  sides->candidates.received.clear();
  sides->indices.assign(domains_.size(), Tensor());
  for (const ReceivedInput& input : received) {
    Side* side = &sides->candidates;
    for (size_t i = 0; i < domains_.size(); ++i) {
      if (form.indexed[i] && form.domains[i].Find(input.alias) >= 0) side = &sides->domains[i];
    }
    side->received.push_back(input);
  }
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (!form.indexed[i]) continue;
    if (absl::Status status = PlanDomain(form, i, sides); !status.ok()) return status;
  }
  Side& candidates = sides->candidates;
  const SignatureInputs& inputs = form.candidates[0];
  inputs.FindAll(candidates.received, &candidates.plan.positions);
  absl::Status status =
      inputs.Plan(candidates.received, candidates.plan.positions, &candidates.plan);
  for (size_t i = 0; i < domains_.size() && status.ok(); ++i) {
    if (form.indexed[i]) status = ReadIndex(form, i, sides);
  }
  return status;
}

absl::Status IndexedRequests::PlanDomain(const Form& form, size_t domain, Sides* sides) const {
  Side& side = sides->domains[domain];
  form.domains[domain].FindAll(side.received, &side.plan.positions);
  return form.domains[domain].Plan(side.received, side.plan.positions, &side.plan);
}

absl::Status IndexedRequests::ReadIndex(const Form& form, size_t domain, Sides* sides) const {
  const SignatureInputs& inputs = form.candidates[0];
  Tensor& index = sides->indices[domain];
  const int place = inputs.Find(index_names_[domain]);
  absl::Status status = inputs.BuildFeed(place, sides->candidates.plan, &index);
  if (!status.ok()) return status;
  return CheckIndex(domains_[domain].name, RowsIn(index), sides->domains[domain].plan.plan.rows);
}

absl::Status IndexedRequests::Run(const PlannedRequest& received, const Counted& counted,
                                  RunResult* result) const {
  const std::vector<int>& outputs = received.outputs;
  thread_local Sides sides;
  const auto count = [&counted](Program program, absl::Status ran) {
    counted.counts->Count(*counted.signature, program, ran);
    return ran;
  };
  const absl::StatusOr<const Form*> form = FormOf(received.inputs);
  absl::Status status = form.ok() ? Plan(**form, received.inputs, &sides) : form.status();
  if (!status.ok()) return status;
  result->expansion.rows = sides.rows();
  const bool have_one_length = HaveOneLength(**form, sides);
  if (stages_ != nullptr && have_one_length) {
    status =
        count(Program::kStages, RunStages(**form, sides, BatchOf(**form, sides), outputs, result));
    if (status.ok()) return status;
    // Columns that came once for all, states that cannot be stacked, or something that is wrong and
    // that the whole model has words for.
    result->aliases.clear();
    result->tensors.clear();
  }
  // One user's candidates are one run whatever they are.
  const bool in_one = gives_ == Gives::kOneRun || !(*form)->indexed[kUser] ||
                      (have_one_length && signature_->record().independent);
  return count(Program::kGathered, RunGathered(**form, sides, in_one, outputs, result));
}

bool IndexedRequests::CanBeJoined(const BatchRules& rules) const {
  return stages_ != nullptr ? stages_->have_independent_rows()
                            : rules.any_signature && signature_->record().independent;
}

const ColumnSource* IndexedRequests::SourceOf(const Form& form, const Sides& sides,
                                              int input) const {
  const Place place = form.places[input];
  const Side& side = place.side == kCandidates ? sides.candidates : sides.domains[place.side];
  return side.plan.sources[place.input];
}

// Whether lists on whose greatest length results depend would have the same in a request per user.
bool IndexedRequests::HaveOneLength(const Form& form, const Sides& sides) const {
  std::vector<int64_t> lengths;
  for (const int input : signature_->lists().own_lengths()) {
    const auto* const source = static_cast<const WireColumn*>(SourceOf(form, sides, input));
    if (source == nullptr) continue;
    // Rows that no candidate reads are computed with the others.
    if (form.places[input].side != kCandidates || !form.indexed[kUser]) {
      if (!colcast::engine::HaveOneLength(source)) return false;
      continue;
    }
    if (!ReadLengths(*source, &lengths)) return false;
    if (lengths.size() == 1) continue;
    const absl::Span<const int64_t> user_of = RowsIn(sides.indices[kUser]);
    std::vector<int64_t> longest(sides.domains[kUser].plan.plan.rows, -1);
    for (size_t row = 0; row < user_of.size(); ++row) {
      longest[user_of[row]] = std::max(longest[user_of[row]], lengths[row]);
    }
    int64_t of_all = -1;
    for (const int64_t of_user : longest) {
      if (of_user >= 0 && of_all >= 0 && of_user != of_all) return false;
      of_all = std::max(of_all, of_user);
    }
  }
  return true;
}

// REQUIRES stages.
StagedProgram::Batch IndexedRequests::BatchOf(const Form& form, const Sides& sides) const {
  StagedProgram::Batch batch;
  batch.candidates = sides.rows();
  for (size_t i = 0; i < form.places.size(); ++i) {
    const ColumnSource* const source = SourceOf(form, sides, static_cast<int>(i));
    batch.columns.push_back(static_cast<const WireColumn*>(source));
  }
  stages_->SetRows(&batch);
  for (size_t i = 0; i < stages_->num_domains(); ++i) {
    for (size_t k = 0; k < domains_.size(); ++k) {
      if (domains_[k].name != stages_->domain(i) || !form.indexed[k]) continue;
      batch.domains[i] = {sides.domains[k].plan.plan.rows, sides.indices[k]};
    }
  }
  return batch;
}

absl::Status IndexedRequests::UserStates(const PlannedRequest& received,
                                         std::vector<Tensor>* states) const {
  thread_local Sides sides;
  sides.domains.resize(domains_.size());
  sides.domains[kUser].received.clear();
  for (const ReceivedInput& input : received.inputs) {
    if (of_users_->domains[kUser].Find(input.alias) >= 0) {
      sides.domains[kUser].received.push_back(input);
    }
  }
  if (absl::Status status = PlanDomain(*of_users_, kUser, &sides); !status.ok()) return status;
  StagedProgram::Batch batch;
  batch.columns.resize(of_users_->places.size());
  for (size_t i = 0; i < of_users_->places.size(); ++i) {
    if (of_users_->places[i].side != kUser) continue;
    batch.columns[i] =
        static_cast<const WireColumn*>(SourceOf(*of_users_, sides, static_cast<int>(i)));
  }
  stages_->SetRows(&batch);
  batch.domains[kUser].rows = sides.domains[kUser].plan.plan.rows;
  return stages_->UserStates(batch, states);
}

absl::Status IndexedRequests::RunOfUser(const PlannedRequest& received,
                                        const std::vector<Tensor>& user_states,
                                        RunResult* result) const {
  thread_local Sides sides;
  const absl::StatusOr<const Form*> form = FormOf(received.inputs);
  if (!form.ok()) return form.status();
  // Nothing is looked up among the users' columns: they are not here.
  sides.domains.assign(domains_.size(), Side());
  sides.domains[kUser].plan.plan.rows = 1;
  sides.domains[kUser].plan.sources.assign((*form)->domains[kUser].inputs().size(), nullptr);
  sides.indices.assign(domains_.size(), Tensor());
  Side& candidates = sides.candidates;
  candidates.received = received.inputs;
  const SignatureInputs& inputs = (*form)->candidates[0];
  inputs.FindAll(candidates.received, &candidates.plan.positions);
  absl::Status status =
      inputs.Plan(candidates.received, candidates.plan.positions, &candidates.plan);
  if (status.ok()) status = ReadIndex(**form, kUser, &sides);
  if (!status.ok()) return status;
  StagedProgram::Batch batch = BatchOf(**form, sides);
  batch.user_states = &user_states;
  return RunStages(**form, sides, batch, received.outputs, result);
}

absl::Status IndexedRequests::RunStages(const Form& form, const Sides& sides,
                                        const StagedProgram::Batch& batch,
                                        const std::vector<int>& outputs, RunResult* result) const {
  const auto context = [&](int input, Tensor* feed) {
    const Place place = form.places[input];
    absl::Status status = BuildFeed(form, sides, input, feed);
    if (!status.ok() || place.side == kCandidates) return status;
    return GatherRows(*feed, RowsIn(sides.indices[place.side]), feed);
  };
  return stages_->RunBatch(batch, outputs, context, result);
}

absl::Status IndexedRequests::BuildFeed(const Form& form, const Sides& sides, int input,
                                        Tensor* feed) const {
  const Place place = form.places[input];
  return place.side == kCandidates
             ? form.candidates[0].BuildFeed(place.input, sides.candidates.plan, feed)
             : form.domains[place.side].BuildFeed(place.input, sides.domains[place.side].plan,
                                                  feed);
}

// Sets `*feed`, which holds what came for an input, to a row for each of these candidates.
absl::Status IndexedRequests::GatherFeed(const Form& form, const Sides& sides, int input,
                                         absl::Span<const int64_t> candidates, Tensor* feed) const {
  const DeclaredInput& declared = signature_->inputs().inputs()[input];
  if (!declared.batched() || feed->dims() == 0) return absl::OkStatus();
  const int side = form.places[input].side;
  std::vector<int64_t> rows(candidates.begin(), candidates.end());
  if (side != kCandidates) {
    const absl::Span<const int64_t> index = RowsIn(sides.indices[side]);
    for (int64_t& row : rows) row = index[row];
  } else if (feed->dim_size(0) != sides.rows()) {
    std::fill(rows.begin(), rows.end(), 0);  // the user's, of whom there is one
  } else if (static_cast<int64_t>(rows.size()) == sides.rows()) {
    return absl::OkStatus();
  }
  return GatherRows(*feed, rows, feed);
}

absl::Status IndexedRequests::RunGathered(const Form& form, const Sides& sides, bool in_one,
                                          const std::vector<int>& outputs,
                                          RunResult* result) const {
  if (absl::Status status = CheckGathered(form, sides); !status.ok()) return status;
  std::vector<Tensor> sent(form.places.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    absl::Status status = BuildFeed(form, sides, static_cast<int>(i), &sent[i]);
    if (!status.ok()) return status;
  }
  const auto run = [&](absl::Span<const int64_t> candidates, RunResult* of_candidates) {
    std::vector<Tensor> feeds = sent;
    for (size_t i = 0; i < feeds.size(); ++i) {
      absl::Status status = GatherFeed(form, sides, static_cast<int>(i), candidates, &feeds[i]);
      if (!status.ok()) return status;
    }
    return signature_->RunFeeds(feeds, outputs, of_candidates);
  };
  if (in_one || sides.rows() == 0) {
    absl::Status status = run(FirstNumbers(sides.rows()), result);
    if (!status.ok() || gives_ == Gives::kOneRun) return status;
    return CheckRows(result->aliases, result->tensors, sides.rows());
  }
  const auto run_one = [&](int64_t, absl::Span<const int64_t> candidates, RunResult* of_user) {
    return run(candidates, of_user);
  };
  return RunByUser(RowsIn(sides.indices[kUser]), sides.domains[kUser].plan.plan.rows, run_one,
                   result);
}

absl::Status IndexedRequests::CheckGathered(const Form& form, const Sides& sides) const {
  double bytes = 0;
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (!form.indexed[i]) continue;
    const SignatureInputs::Scratch& plan = sides.domains[i].plan;
    const int64_t rows = std::max<int64_t>(1, plan.plan.rows);
    const int64_t copies = (sides.rows() + rows - 1) / rows;
    for (const ColumnSource* source : plan.sources) {
      if (source != nullptr) bytes += source->ExtraBytes(copies);
    }
  }
  const auto most = static_cast<double>(options_.max_expanded_bytes);
  if (bytes <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "with the rows that each of ", sides.rows(), " candidates reads beside it, the columns would",
      " take ", bytes, " bytes more than were sent; max_expanded_bytes is ",
      options_.max_expanded_bytes));
}

}  // namespace colcast::engine
