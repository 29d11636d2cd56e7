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

constexpr size_t kUser = Batch::kUser;
constexpr size_t kMostDomains = 64;

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

IndexedRequests::IndexedRequests(const SignatureDef& declared, SignatureInputs inputs,
                                 const Signature& signature, Gives gives, StagedProgram* stages,
                                 std::vector<DomainColumns> domains, const Options& options)
    : declared_(declared),
      inputs_(std::move(inputs)),
      signature_(&signature),
      gives_(gives),
      stages_(stages),
      domains_(std::move(domains)),
      options_(options),
      domain_of_(inputs_.inputs().size(), kCandidates) {
  for (size_t domain = 0; domain < domains_.size(); ++domain) {
    const std::set<std::string>& columns = domains_[domain].columns;
    index_names_.push_back(columns.empty() ? "" : RowTo(domains_[domain].name));
    for (const std::string& column : columns) {
      const int input = inputs_.Find(column);
      if (input >= 0 && domain_of_[input] == kCandidates) {
        domain_of_[input] = static_cast<int>(domain);
      }
    }
  }
}

std::unique_ptr<IndexedRequests> IndexedRequests::Create(const SignatureDef& declared,
                                                         const Signature& signature, Gives gives,
                                                         StagedProgram* stages,
                                                         std::vector<DomainColumns> domains,
                                                         const Options& options) {
  if (domains.empty() || domains.size() > kMostDomains || domains[kUser].columns.empty()) {
    return nullptr;
  }
  for (const DomainColumns& domain : domains) {
    if (declared.inputs().contains(RowTo(domain.name))) return nullptr;
  }
  absl::StatusOr<SignatureInputs> inputs = SignatureInputs::Create(declared);
  const absl::Span<const DeclaredInput> theirs = signature.inputs().inputs();
  const auto is_same = [](const DeclaredInput& a, const DeclaredInput& b) {
    return a.alias == b.alias && a.dtype == b.dtype;
  };
  if (!inputs.ok() || !std::equal(theirs.begin(), theirs.end(), inputs->inputs().begin(),
                                  inputs->inputs().end(), is_same)) {
    return nullptr;
  }
  std::unique_ptr<IndexedRequests> made(new IndexedRequests(
      declared, *std::move(inputs), signature, gives, stages, std::move(domains), options));
  return made->FormOf(uint64_t{1} << kUser).ok() ? std::move(made) : nullptr;
}

const IndexedRequests::Form* IndexedRequests::Find(uint64_t indexed) const {
  const Form* form = forms_.load(std::memory_order_acquire);
  while (form != nullptr && form->indexed != indexed) form = form->next;
  return form;
}

absl::StatusOr<const IndexedRequests::Form*> IndexedRequests::FormOf(uint64_t indexed) const {
  if (const Form* const form = Find(indexed); form != nullptr) return form;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const Form* const form = Find(indexed); form != nullptr) return form;
  Form& form = made_.emplace_back();
  if (absl::Status status = MakeForm(indexed, &form); !status.ok()) {
    made_.pop_back();
    return status;
  }
  form.next = forms_.load(std::memory_order_relaxed);
  forms_.store(&form, std::memory_order_release);
  return &form;
}

absl::Status IndexedRequests::MakeForm(uint64_t indexed, Form* form) const {
  form->indexed = indexed;
  std::vector<SignatureDef> sides(domains_.size());
  SignatureDef candidates;
  for (const auto& [alias, info] : declared_.inputs()) {
    const int domain = domain_of_[inputs_.Find(alias)];
    if (domain == kCandidates || !form->has(domain)) {
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
    if (form->has(i)) AddIndex(domains_[i].name, &candidates);
    if (absl::Status status = add(sides[i], &form->domains); !status.ok()) return status;
  }
  return add(candidates, &form->candidates);
}

// What the signature has no input for may be an index.
uint64_t IndexedRequests::IndexedIn(const PlannedRequest& received) const {
  uint64_t indexed = 0;
  for (size_t i = 0; i < received.inputs.size(); ++i) {
    const absl::string_view alias = received.inputs[i].alias;
    if (received.plan.positions[i] >= 0 || !IsRowIndex(alias)) continue;
    const auto found = std::find(index_names_.begin(), index_names_.end(), alias);
    if (found != index_names_.end()) indexed |= uint64_t{1} << (found - index_names_.begin());
  }
  return indexed;
}

bool IndexedRequests::Take(const PlannedRequest& received) const {
  return IndexedIn(received) != 0;
}

absl::Status IndexedRequests::Plan(const PlannedRequest& received, Batch* batch) const {
  const absl::StatusOr<const Form*> found = FormOf(IndexedIn(received));
  if (!found.ok()) return found.status();
  const Form& form = **found;
  thread_local std::vector<Side> sides;  // by domain
  thread_local Side candidates;
  if (sides.size() < domains_.size()) sides.resize(domains_.size());
  for (Side& side : sides) side.received.clear();
  candidates.received.clear();
  batch->columns.assign(inputs_.inputs().size(), nullptr);
  for (size_t i = 0; i < received.inputs.size(); ++i) {
    const int position = received.plan.positions[i];
    const int domain = position < 0 ? kCandidates : domain_of_[position];
    const bool apart = domain != kCandidates && form.has(domain);
    (apart ? sides[domain] : candidates).received.push_back(received.inputs[i]);
    if (position >= 0) batch->columns[position] = AsWire(received.inputs[i].source);
  }
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (!form.has(i)) continue;
    if (absl::Status status = sides[i].Plan(form.domains[i]); !status.ok()) return status;
  }
  if (absl::Status status = candidates.Plan(form.candidates[0]); !status.ok()) return status;
  batch->candidates = candidates.plan.plan.rows;
  SetRows(batch);
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (!form.has(i)) continue;
    batch->domains[i].rows = sides[i].plan.plan.rows;
    if (absl::Status status = ReadIndex(form, i, candidates, batch); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status IndexedRequests::ReadIndex(const Form& form, size_t domain, const Side& candidates,
                                        Batch* batch) const {
  Batch::Domain& of = batch->domains[domain];
  const int place = form.candidates[0].Find(index_names_[domain]);
  absl::Status status = form.candidates[0].BuildFeed(place, candidates.plan, &of.index);
  return status.ok() ? CheckIndex(domains_[domain].name, RowsIn(of.index), of.rows) : status;
}

void IndexedRequests::SetBatch(const PlannedRequest& planned, Batch* batch) const {
  batch->candidates = planned.rows();
  batch->columns.clear();
  for (const ColumnSource* const source : planned.plan.sources) {
    batch->columns.push_back(AsWire(source));
  }
  SetRows(batch);
}

// As they are without an index.
void IndexedRequests::SetRows(Batch* batch) const {
  batch->domains.assign(domains_.size(), {batch->candidates, {}});
  batch->domains[kUser].rows = 1;
  if (stages_ != nullptr) stages_->SetRows(batch);
}

absl::Status IndexedRequests::Run(const Batch& batch, const std::vector<int>& outputs,
                                  const Counted& counted, RunResult* result) const {
  const auto count = [&counted](Program program, absl::Status ran) {
    counted.counts->Count(*counted.signature, program, ran);
    return ran;
  };
  result->expansion.rows = batch.candidates;
  const bool have_one_length = HaveOneLength(batch);
  if (stages_ != nullptr && have_one_length) {
    absl::Status status = count(Program::kStages, RunStages(batch, outputs, result));
    if (status.ok()) return status;
    // Columns that came once for all, states that cannot be stacked, or something that is wrong and
    // that the whole model has words for.
    result->aliases.clear();
    result->tensors.clear();
  }
  // One user's candidates are one run whatever they are.
  const bool in_one = gives_ == Gives::kOneRun || !batch.has_index(kUser) ||
                      (have_one_length && signature_->record().independent);
  return count(Program::kGathered, RunGathered(batch, in_one, outputs, result));
}

bool IndexedRequests::CanBeJoined(const BatchRules& rules) const {
  return stages_ != nullptr ? stages_->have_independent_rows()
                            : rules.any_signature && signature_->record().independent;
}

bool IndexedRequests::HaveOneLength(const Batch& batch) const {
  std::vector<int64_t> lengths;
  for (const int input : signature_->lists().own_lengths()) {
    const WireColumn* const column = batch.columns[input];
    if (column == nullptr) continue;
    // Rows that no candidate reads are computed with the others.
    if (batch.has_index(domain_of_[input]) || !batch.has_index(kUser)) {
      if (!colcast::engine::HaveOneLength(column)) return false;
      continue;
    }
    if (!ReadLengths(*column, &lengths)) return false;
    if (lengths.size() == 1) continue;
    const absl::Span<const int64_t> user_of = RowsIn(batch.domains[kUser].index);
    std::vector<int64_t> longest(batch.domains[kUser].rows, -1);
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

absl::Status IndexedRequests::RunStages(const Batch& batch, const std::vector<int>& outputs,
                                        RunResult* result) const {
  double gathered = 0;
  const auto context = [&](int input, Tensor* feed) {
    const int domain = domain_of_[input];
    absl::Status status = BuildFeed(batch, input, feed);
    if (!status.ok() || !batch.has_index(domain)) return status;
    return Gather(RowsIn(batch.domains[domain].index), &gathered, feed);
  };
  return stages_->RunBatch(batch, outputs, context, result);
}

// With the rows of its domain where that has an index.
absl::Status IndexedRequests::BuildFeed(const Batch& batch, int input, Tensor* feed) const {
  const int domain = domain_of_[input];
  const int64_t rows = batch.has_index(domain)             ? batch.domains[domain].rows
                       : inputs_.inputs()[input].batched() ? batch.candidates
                                                           : SignatureInputs::kAsSent;
  return inputs_.BuildRows(input, batch.columns[input], rows, feed);
}

// Sets `*feed`, which holds what came for an input, to a row for each of these candidates.
absl::Status IndexedRequests::GatherFeed(const Batch& batch, int input,
                                         absl::Span<const int64_t> candidates, double* gathered,
                                         Tensor* feed) const {
  const DeclaredInput& declared = signature_->inputs().inputs()[input];
  if (!declared.batched() || feed->dims() == 0) return absl::OkStatus();
  const int domain = domain_of_[input];
  std::vector<int64_t> rows(candidates.begin(), candidates.end());
  if (batch.has_index(domain)) {
    const absl::Span<const int64_t> index = RowsIn(batch.domains[domain].index);
    for (int64_t& row : rows) row = index[row];
  } else if (feed->dim_size(0) != batch.candidates) {
    std::fill(rows.begin(), rows.end(), 0);  // the user's, of whom there is one
  } else if (static_cast<int64_t>(rows.size()) == batch.candidates) {
    return absl::OkStatus();
  }
  return Gather(rows, gathered, feed);
}

absl::Status IndexedRequests::Gather(absl::Span<const int64_t> rows, double* gathered,
                                     Tensor* feed) const {
  *gathered += BytesOfRows(*feed, rows);
  if (*gathered > static_cast<double>(options_.max_expanded_bytes))
    return TooMuch(rows.size(), *gathered, "");
  return GatherRows(*feed, rows, feed);
}

absl::Status IndexedRequests::RunGathered(const Batch& batch, bool in_one,
                                          const std::vector<int>& outputs,
                                          RunResult* result) const {
  if (absl::Status status = CheckGathered(batch); !status.ok()) return status;
  std::vector<Tensor> sent(batch.columns.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    absl::Status status = BuildFeed(batch, static_cast<int>(i), &sent[i]);
    if (!status.ok()) return status;
  }
  const auto run = [&](absl::Span<const int64_t> candidates, RunResult* of_candidates) {
    std::vector<Tensor> feeds = sent;
    double gathered = 0;
    for (size_t i = 0; i < feeds.size(); ++i) {
      absl::Status status =
          GatherFeed(batch, static_cast<int>(i), candidates, &gathered, &feeds[i]);
      if (!status.ok()) return status;
    }
    return signature_->RunFeeds(feeds, outputs, of_candidates);
  };
  if (in_one || batch.candidates == 0) {
    absl::Status status = run(FirstNumbers(batch.candidates), result);
    if (!status.ok() || gives_ == Gives::kOneRun) return status;
    return CheckRows(result->aliases, result->tensors, batch.candidates);
  }
  const auto run_one = [&](int64_t, absl::Span<const int64_t> candidates, RunResult* of_user) {
    return run(candidates, of_user);
  };
  const Batch::Domain& users = batch.domains[kUser];
  return RunByUser(RowsIn(users.index), users.rows, run_one, result);
}

absl::Status IndexedRequests::CheckGathered(const Batch& batch) const {
  double bytes = 0;
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    if (batch.columns[i] == nullptr || !batch.has_index(domain_of_[i])) continue;
    const int64_t rows = std::max<int64_t>(1, batch.domains[domain_of_[i]].rows);
    bytes += batch.columns[i]->ExtraBytes((batch.candidates + rows - 1) / rows);
  }
  const auto most = static_cast<double>(options_.max_expanded_bytes);
  return bytes <= most ? absl::OkStatus()
                       : TooMuch(batch.candidates, bytes, " more than were sent");
}

absl::Status IndexedRequests::TooMuch(int64_t candidates, double bytes, const char* than) const {
  return absl::ResourceExhaustedError(
      absl::StrCat("with the rows that each of ", candidates,
                   " candidates reads beside it, the columns", " would take ", bytes, " bytes",
                   than, "; max_expanded_bytes is ", options_.max_expanded_bytes));
}

}  // namespace colcast::engine
