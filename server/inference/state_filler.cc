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

// Rows per run, which takes about a millisecond.
constexpr uint32_t kRows = 256;

// The interval between checks for rows from deltas or new versions.
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
        // Starts over as soon as the table has a new version.
        if (items_->tables()[i] != tables[i]) break;
      }
    }
  } while (!stop_.WaitFor(kWait));
}

// Fills the states of the next kRows rows. Returns false if no rows remain or the run failed.
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
