#include "server/engine/program/domains.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/rows.h"

namespace colcast::engine {
namespace {

using tensorflow::SignatureDef;
using tensorflow::Tensor;

constexpr size_t kItem = 1;
constexpr size_t kMostDomains = 64;

// Copies an input and its default to another signature.
void AddInput(const SignatureDef& from, const std::string& alias, SignatureDef* to) {
  (*to->mutable_inputs())[alias] = from.inputs().at(alias);
  const auto found = from.defaults().find(alias);
  if (found != from.defaults().end()) (*to->mutable_defaults())[alias] = found->second;
}

void AddIndex(const std::string& domain, SignatureDef* to) {
  tensorflow::TensorInfo& index = (*to->mutable_inputs())[RowTo(domain)];
  index.set_name(RowTo(domain) + ":0");  // a placeholder name; never fed
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

// Whether the columnar signature says that a column has rows; true if it lacks the column. The late
// signature declares a first dimension of 1 for a user's row and for a column without rows alike.
bool TakesRows(const Signature* columnar, const std::string& column) {
  const int input = columnar == nullptr ? -1 : columnar->inputs().Find(column);
  return input < 0 || columnar->inputs().inputs()[input].batched();
}

}  // namespace

Domains::Domains(const SignatureDef& declared, std::vector<DomainColumns> domains,
                 const Signature* columnar, const Options& options)
    : declared_(declared),
      inputs_(*SignatureInputs::Create(declared)),
      domains_(std::move(domains)),
      columnar_(columnar),
      options_(options),
      domain_of_(inputs_.inputs().size(), kCandidates) {
  of_stage_.resize(domains_.size());
  for (size_t domain = 0; domain < domains_.size(); ++domain) {
    if (domains_[domain].stage != nullptr) {
      for (const DeclaredInput& input : domains_[domain].stage->inputs().inputs()) {
        of_stage_[domain].push_back(inputs_.Find(input.alias));
      }
    }
    for (const std::string& column : domains_[domain].columns) {
      const int input = inputs_.Find(column);
      if (input >= 0 && domain_of_[input] == kCandidates && TakesRows(columnar_, column)) {
        domain_of_[input] = static_cast<int>(domain);
      }
    }
  }
  if (!MayTakeIndex()) return;
  for (const DomainColumns& domain : domains_) {
    index_names_.push_back(domain.columns.empty() ? "" : RowTo(domain.name));
  }
}

bool Domains::MayTakeIndex() const {
  if (columnar_ == nullptr || domains_.empty() || domains_.size() > kMostDomains ||
      domains_[Batch::kUser].columns.empty()) {
    return false;
  }
  for (size_t domain = 0; domain < domains_.size(); ++domain) {
    if (declared_.inputs().contains(RowTo(domains_[domain].name))) return false;
    // With an index, the expansion rule treats inputs of these names as the domain's states.
    const std::string states = absl::StrCat(domains_[domain].name, "_state/");
    for (size_t input = 0; input < domain_of_.size(); ++input) {
      const bool is_state = absl::StartsWith(inputs_.inputs()[input].alias, states);
      if (is_state && domain_of_[input] != static_cast<int>(domain)) return false;
    }
  }
  const absl::Span<const DeclaredInput> theirs = columnar_->inputs().inputs();
  const auto is_same = [](const DeclaredInput& a, const DeclaredInput& b) {
    return a.alias == b.alias && a.dtype == b.dtype;
  };
  return std::equal(theirs.begin(), theirs.end(), inputs_.inputs().begin(), inputs_.inputs().end(),
                    is_same) &&
         FormOf(uint64_t{1} << Batch::kUser).ok();
}

absl::StatusOr<const Domains::Form*> Domains::FormOf(uint64_t indexed) const {
  {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = forms_.find(indexed);
    if (found != forms_.end()) return &found->second;
  }
  Form form;
  if (absl::Status status = MakeForm(indexed, &form); !status.ok()) return status;
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  return &forms_.try_emplace(indexed, std::move(form)).first->second;
}

absl::Status Domains::MakeForm(uint64_t indexed, Form* form) const {
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
  if (absl::Status status = add(candidates, &form->candidates); !status.ok()) return status;
  for (size_t i = 0; i < domain_of_.size(); ++i) {
    form->places.push_back(SideOf(*form, static_cast<int>(i)).Find(inputs_.inputs()[i].alias));
  }
  return absl::OkStatus();
}

const SignatureInputs& Domains::SideOf(const Form& form, int input) const {
  const int domain = domain_of_[input];
  return domain != kCandidates && form.has(domain) ? form.domains[domain] : form.candidates[0];
}

// Counts row_to_<domain> as an index only if the signature has no input of that name.
uint64_t Domains::IndexedIn(const ReceivedRequest& received) const {
  uint64_t indexed = 0;
  if (!received.has_unknown) return indexed;
  for (size_t i = 0; i < received.inputs.size(); ++i) {
    const std::string_view alias = received.inputs[i].name();
    if (received.positions[i] >= 0 || !IsRowIndex(alias)) continue;
    const auto found = std::find(index_names_.begin(), index_names_.end(), alias);
    if (found != index_names_.end()) indexed |= uint64_t{1} << (found - index_names_.begin());
  }
  return indexed;
}

absl::Status Domains::Plan(const ReceivedRequest& received, Batch* batch) const {
  const absl::StatusOr<const Form*> found = FormOf(IndexedIn(received));
  if (!found.ok()) return found.status();
  const Form& form = **found;
  thread_local std::vector<Side> sides;  // per domain
  thread_local Side candidates;
  if (sides.size() < domains_.size()) sides.resize(domains_.size());
  for (size_t i = 0; i < domains_.size(); ++i) sides[i].Begin(form.domains[i].inputs().size());
  candidates.Begin(form.candidates[0].inputs().size());
  batch->columns = received.columns;
  for (size_t i = 0; i < received.inputs.size(); ++i) {
    const int position = received.positions[i];
    const int domain = position < 0 ? kCandidates : domain_of_[position];
    const bool apart = domain != kCandidates && form.has(domain);
    const Input& input = received.inputs[i];
    const int place = position < 0 ? form.candidates[0].Find(input.name()) : form.places[position];
    if (place < 0) {
      candidates.unknown.push_back(input.name());
    } else {
      (apart ? sides[domain] : candidates).columns[place] = &input;
    }
  }
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (!form.has(i)) continue;
    if (absl::Status status = sides[i].Plan(form.domains[i]); !status.ok()) return status;
  }
  if (absl::Status status = candidates.Plan(form.candidates[0]); !status.ok()) return status;
  batch->candidates = candidates.plan.rows;
  SetRows(batch);
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (!form.has(i)) continue;
    batch->domains[i].rows = sides[i].plan.rows;
    if (absl::Status status = ReadIndex(form, i, candidates, batch); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Domains::ReadIndex(const Form& form, size_t domain, const Side& candidates,
                                Batch* batch) const {
  Batch::Domain& of = batch->domains[domain];
  const int place = form.candidates[0].Find(index_names_[domain]);
  const bool as_sent = candidates.plan.actions[place] == InputAction::kPass;
  absl::Status status = form.candidates[0].BuildRows(
      place, candidates.columns[place], as_sent ? SignatureInputs::kAsSent : candidates.plan.rows,
      &of.index);
  return status.ok() ? CheckIndex(domains_[domain].name, RowsIn(of.index), of.rows) : status;
}

void Domains::SetRows(Batch* batch) const {
  batch->domains.assign(domains_.size(), {batch->candidates, {}});
  if (domains_.empty()) return;
  batch->domains[Batch::kUser].rows = 1;
  for (size_t i = kItem + 1; i < domains_.size(); ++i) {
    if (domains_[i].stage == nullptr) continue;
    batch->domains[i].rows = 1;
    for (const int input : of_stage_[i]) {
      if (HasRows(inputs_.inputs()[input], batch->columns[input], batch->candidates)) {
        batch->domains[i].rows = batch->candidates;
      }
    }
  }
}

bool Domains::HaveOneLength(const Batch& batch, absl::Span<const int> lengths) const {
  if (!batch.has_index(Batch::kUser)) return true;
  const absl::Span<const int64_t> user_of = RowsIn(batch.domains[Batch::kUser].index);
  std::vector<int64_t> own;
  for (const int input : lengths) {
    if (batch.columns[input] == nullptr) continue;
    if (!ReadLengths(*batch.columns[input], &own)) return false;
    if (own.size() == 1) continue;
    const int domain = domain_of_[input];
    const absl::Span<const int64_t> index =
        batch.has_index(domain) ? RowsIn(batch.domains[domain].index) : absl::Span<const int64_t>();
    std::vector<int64_t> longest(batch.domains[Batch::kUser].rows, -1);
    for (size_t i = 0; i < user_of.size(); ++i) {
      longest[user_of[i]] = std::max(longest[user_of[i]], own[index.empty() ? i : index[i]]);
    }
    int64_t of_all = -1;
    for (const int64_t of_user : longest) {
      if (of_user >= 0 && of_all >= 0 && of_user != of_all) return false;
      of_all = std::max(of_all, of_user);
    }
  }
  return true;
}

absl::Status Domains::BuildFeed(const Batch& batch, int input, Tensor* feed) const {
  const int domain = domain_of_[input];
  const int64_t rows = batch.has_index(domain)             ? batch.domains[domain].rows
                       : inputs_.inputs()[input].batched() ? batch.candidates
                                                           : SignatureInputs::kAsSent;
  return inputs_.BuildRows(input, batch.columns[input], rows, feed);
}

}  // namespace colcast::engine
