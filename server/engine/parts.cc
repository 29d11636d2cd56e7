#include "server/engine/parts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/rows.h"

namespace colcast::engine {
namespace {

using states::Store;
using tensorflow::Tensor;

// Rows after which a store is judged (states::Prospects).
constexpr int64_t kUserStretch = 32;
constexpr int64_t kItemStretch = 512;

// What a thread keeps from one request to the next.
struct Scratch {
  Part::Rows user;
  Part::Rows item;
  KnownPairs::Rows pairs;
};

Scratch* ThreadScratch() {
  thread_local Scratch scratch;
  return &scratch;
}

// Neither the messages nor the states outlive the request.
void Release(Part::Rows* rows) {
  rows->columns.clear();
  rows->found.clear();
}

// For each input of `part` the position of the same one in `late`; empty if there is none.
std::vector<int> PositionsOf(const SignatureInputs& part, const SignatureInputs& late) {
  std::vector<int> positions;
  for (const DeclaredInput& input : part.inputs()) {
    const int position = late.Find(input.alias);
    if (position < 0 || late.inputs()[position].dtype != input.dtype) return {};
    positions.push_back(position);
  }
  return positions;
}

const WireColumn* AsWire(const ColumnSource* source) {
  return static_cast<const WireColumn*>(source);
}

// Gives each input of a part the late signature's column.
template <typename Column>
void SetColumns(const std::vector<int>& inputs, const std::vector<const Column*>& columns,
                Part::Rows* rows) {
  for (size_t i = 0; i < inputs.size(); ++i) rows->columns[i] = AsWire(columns[inputs[i]]);
}

}  // namespace

Parts::Parts(const PartSignatures& signatures, const StateMemories& memories)
    : late_(signatures.late),
      pair_(signatures.pair),
      many_users_per_run_(signatures.many_users_per_run),
      user_(signatures.user, "user", memories.user.get(), kUserStretch, signatures.padded_columns),
      item_(signatures.item, "item", memories.item.get(), kItemStretch, signatures.padded_columns),
      pairs_(memories.pair.get(), kItemStretch) {}

std::unique_ptr<Parts> Parts::Create(const PartSignatures& signatures,
                                     const StateMemories& memories) {
  std::unique_ptr<Parts> parts(new Parts(signatures, memories));
  return parts->Connect() ? std::move(parts) : nullptr;
}

bool Parts::Connect() {
  const SignatureInputs& late = late_->inputs();
  if (pair_.runner().output_aliases() != late_->output_aliases()) return false;
  user_inputs_ = PositionsOf(user_.runner().inputs(), late);
  item_inputs_ = PositionsOf(item_.runner().inputs(), late);
  if (user_inputs_.empty() || item_inputs_.empty()) return false;
  if (!pair_.Connect(user_.runner().output_aliases(), item_.runner().output_aliases(), late,
                     &context_inputs_)) {
    return false;
  }
  // Every column belongs to one part.
  std::vector<int> times_read(late.inputs().size());
  for (const std::vector<int>* inputs : {&user_inputs_, &item_inputs_, &context_inputs_}) {
    for (const int position : *inputs) ++times_read[position];
  }
  return std::all_of(times_read.begin(), times_read.end(), [](int times) { return times == 1; });
}

bool Parts::Run(const SignatureInputs::Scratch& plan, const std::vector<int>& outputs,
                RunResult* result) {
  const int64_t rows = plan.plan.rows;
  if (rows == 0) return false;
  Part::Rows& user = ThreadScratch()->user;
  Part::Rows& item = ThreadScratch()->item;
  user_.Begin(1, &user);
  item_.Begin(rows, &item);
  SetColumns(user_inputs_, plan.sources, &user);
  SetColumns(item_inputs_, plan.sources, &item);
  KnownPairs::Rows& pairs = ThreadScratch()->pairs;
  const bool keep_pairs = FindPairs(plan, outputs, &user, &item, &pairs);
  bool done = keep_pairs && pairs.missing.empty();
  if (done) {
    late_->NoRows(outputs, result);  // their names
    result->tensors.clear();
  } else {
    Store::Claim claim;
    done =
        (FindStates(&user, &item, &claim) || (keep_pairs && pairs_.store().prospects().good())) &&
        RunRows(plan, outputs, &claim, &user, &item, result).ok();
  }
  if (done && keep_pairs) done = pairs_.Join(pairs, &result->tensors).ok();
  if (!done) {
    result->aliases.clear();
    result->tensors.clear();
  }
  Release(&user);
  Release(&item);
  pairs.found.clear();
  return done;
}

// Whether pairs are looked for: then the items that are wanted are those of the pairs not found.
bool Parts::FindPairs(const SignatureInputs::Scratch& plan, const std::vector<int>& outputs,
                      Part::Rows* user, Part::Rows* item, KnownPairs::Rows* pairs) {
  // That an output's row depends on its own row alone is proved only together with other users'.
  Store& store = pairs_.store();
  if (!store.on() || !many_users_per_run_) return false;
  if (!store.prospects().Look()) {
    store.counters().Add(&states::Counters::not_looked, item->count);
    return false;
  }
  thread_local std::vector<states::Key> context;
  if (!user_.MakeKeys(user) || !item_.MakeKeys(item) || !MakeContextKeys(plan, &context)) {
    user->keys.clear();
    item->keys.clear();
    return false;
  }
  pairs_.Find(user->keys[0], item->keys, context, outputs, pairs);
  if (pairs->missing.size() < pairs->keys.size()) item->wanted = pairs->missing;
  return true;
}

bool Parts::MakeContextKeys(const SignatureInputs::Scratch& plan,
                            std::vector<states::Key>* keys) const {
  thread_local states::RowKeys row_keys;
  row_keys.Begin(plan.plan.rows, pairs_.store().hash());
  for (const int position : context_inputs_) {
    const WireColumn* const column = AsWire(plan.sources[position]);
    if (column == nullptr) {
      row_keys.AddAbsent();
    } else if (late_->inputs().inputs()[position].batched() && !column->dims().empty() &&
               column->dims()[0] == plan.plan.rows) {
      if (!row_keys.AddRows(column->column(), column->count()).ok()) return false;
    } else {
      row_keys.AddShared(column->column());
    }
  }
  row_keys.Finish(keys);
  return true;
}

// The outputs of the items wanted.
absl::Status Parts::RunRows(const SignatureInputs::Scratch& plan, const std::vector<int>& outputs,
                            Store::Claim* claim, Part::Rows* user, Part::Rows* item,
                            RunResult* result) {
  PairPart::Feeds feeds;
  // The user first: others may wait for it.
  absl::Status status = user_.Complete(user, claim, &feeds.users);
  if (status.ok()) status = item_.Complete(item, nullptr, &feeds.items);
  for (const int position : context_inputs_) {
    if (!status.ok()) break;
    Tensor& feed = feeds.context.emplace_back();
    status = late_->inputs().BuildFeed(position, plan, &feed);
    const bool has_rows = late_->inputs().inputs()[position].batched() && feed.dims() > 0;
    if (status.ok() && has_rows && !item->wanted.empty()) {
      status = GatherRows(feed, item->wanted, &feed);
    }
  }
  feeds.row_to_user = PairPart::OneUser(
      item->wanted.empty() ? item->count : static_cast<int64_t>(item->wanted.size()));
  return status.ok() ? pair_.Run(feeds, outputs, result) : status;
}

std::vector<states::StoreStats> Parts::stats() const {
  std::vector<states::StoreStats> stats = {user_.stats(), item_.stats()};
  if (pairs_.store().on()) stats.push_back(pairs_.store().stats());
  return stats;
}

bool Parts::FindStates(Part::Rows* user, Part::Rows* item, Store::Claim* claim) {
  Store& users = user_.store();
  bool gain = false;  // by running the parts, now or for the next request
  if (users.on()) {
    // A user is one row: it is always looked for.
    const bool keep = users.prospects().good();
    if (!user_.FindOne(user, keep ? claim : nullptr)) return false;
    gain = keep || user->found[0];
    if (!gain) user->keys.clear();
  } else {
    user->keys.clear();
  }
  return item_.LookFor(item, &gain) && gain;
}

bool Parts::IsPrefetch(absl::Span<const ReceivedInput> received,
                       absl::Span<const int> positions) const {
  size_t users = 0;
  for (size_t i = 0; i < received.size(); ++i) {
    if (positions[i] < 0) return false;
    const bool is_user =
        std::find(user_inputs_.begin(), user_inputs_.end(), positions[i]) != user_inputs_.end();
    const absl::Span<const int64_t> dims = received[i].source->dims();
    users += is_user;
    if (!is_user && (dims.empty() || dims[0] != 0)) return false;
  }
  return users > 0;
}

absl::Status Parts::Prefetch(absl::Span<const ReceivedInput> received,
                             const std::vector<int>& outputs, RunResult* result) {
  Part::Rows& user = ThreadScratch()->user;
  user_.Begin(1, &user);
  std::vector<ReceivedInput> of_user;
  for (size_t i = 0; i < received.size(); ++i) {
    const int position = user_.runner().inputs().Find(received[i].alias);
    if (position < 0) continue;
    user.columns[position] = AsWire(received[i].source);
    of_user.push_back(received[i]);
  }
  SignatureInputs::Scratch& scratch = user.inputs;
  user_.runner().inputs().FindAll(of_user, &scratch.positions);
  absl::Status status = user_.runner().inputs().Plan(of_user, scratch.positions, &scratch);
  if (status.ok() && scratch.plan.rows != 1) {
    status = absl::InvalidArgumentError(
        absl::StrCat("a request without candidates has ", scratch.plan.rows, " users; expected 1"));
  }
  if (status.ok() && user_.store().on()) {
    Store::Claim claim;
    std::vector<Tensor> states;
    // Where a value is malformed, the run says so.
    user_.FindOne(&user, &claim);
    status = user_.Complete(&user, &claim, &states);
  }
  Release(&user);
  result->expansion.rows = 0;
  if (status.ok()) late_->NoRows(outputs, result);
  return status;
}

absl::Status Parts::UserStates(const Batch& batch, std::vector<Tensor>* states) {
  if (batch.user_states != nullptr) {
    *states = *batch.user_states;
    return absl::OkStatus();
  }
  Part::Rows& user = ThreadScratch()->user;
  user_.Begin(batch.users, &user);
  SetColumns(user_inputs_, batch.columns, &user);
  // What is malformed has no keys; the run says what it is.
  size_t num_found = 0;
  if (user_.store().on()) user_.Find(&user, &num_found);
  if (!user_.store().prospects().good()) user.keys.clear();
  absl::Status status = user_.Complete(&user, nullptr, states);
  Release(&user);
  return status;
}

absl::Status Parts::ItemStates(const Batch& batch, std::vector<Tensor>* states) {
  Part::Rows& item = ThreadScratch()->item;
  item_.Begin(batch.rows, &item);
  SetColumns(item_inputs_, batch.columns, &item);
  bool gain = false;
  // What is malformed has no keys; the run says what it is.
  item_.LookFor(&item, &gain);
  absl::Status status = item_.Complete(&item, nullptr, states);
  Release(&item);
  return status;
}

absl::Status Parts::RunBatch(const Batch& batch, const std::vector<int>& outputs,
                             RunResult* result) {
  PairPart::Feeds feeds{{}, {}, batch.context, batch.row_to_user};
  if (absl::Status status = UserStates(batch, &feeds.users); !status.ok()) return status;
  if (batch.rows == 0) {
    late_->NoRows(outputs, result);
    return absl::OkStatus();
  }
  if (absl::Status status = ItemStates(batch, &feeds.items); !status.ok()) return status;
  return many_users_per_run_ || batch.users == 1
             ? pair_.Run(feeds, outputs, result)
             : pair_.RunByUser(feeds, batch.users, outputs, result);
}

}  // namespace colcast::engine
