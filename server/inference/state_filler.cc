#include "server/inference/state_filler.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>

#include "server/base/status.h"
#include "server/base/thread.h"
#include "server/items/item_columns.h"

namespace colcast::inference {
namespace {

// Rows per run. A run takes about a millisecond.
constexpr uint32_t kRows = 256;

// How often to check for new rows, which come from deltas or new versions.
constexpr std::chrono::seconds kWait(1);

}  // namespace

StateFiller::StateFiller(const ItemLookup* items, const engine::Model* model)
    : items_(items), model_(model), thread_("states of items", [this] { Run(); }) {}

StateFiller::~StateFiller() { stop_.Set(); }

void StateFiller::Run() {
  LowerThisThreadsPriority();
  std::vector<Progress> progress;
  do {
    const std::vector<std::shared_ptr<const items::ItemTable>> tables = items_->tables();
    progress.resize(tables.size());
    for (size_t i = 0; i < tables.size(); ++i) {
      if (tables[i] == nullptr) continue;
      if (progress[i].table != tables[i]->number()) {
        progress[i] = {tables[i]->number(), items::ItemTable::kUnknown + 1};
      }
      while (!stop_.IsSet() && FillSome(tables[i], &progress[i])) {
        // The table has been replaced, so the next round starts with the new one.
        if (items_->tables()[i] != tables[i]) break;
      }
    }
  } while (!stop_.WaitFor(kWait));
}

// Computes the states of the next kRows rows. Returns false if no rows remain or memory ran out.
bool StateFiller::FillSome(const std::shared_ptr<const items::ItemTable>& table,
                           Progress* progress) const {
  const uint32_t end = std::min(table->end() - progress->next, kRows) + progress->next;
  if (progress->next == end) return false;
  std::vector<uint32_t> numbers(end - progress->next);
  std::iota(numbers.begin(), numbers.end(), progress->next);
  std::vector<size_t> features(table->features().size());
  std::iota(features.begin(), features.end(), size_t{0});
  progress->next = end;
  const Status status = WithinMemory([&] {
    DecodedRequest rows;
    items::AddColumns(table, std::move(numbers), features, &rows);
    if (!model_->FillStates(rows)) progress->next = table->end();
    return OkStatus();
  });
  return status.ok();
}

}  // namespace colcast::inference
