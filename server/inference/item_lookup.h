// What requests to a model leave out, found in its item tables by the keys that they send.
#ifndef COLCAST_SERVER_INFERENCE_ITEM_LOOKUP_H_
#define COLCAST_SERVER_INFERENCE_ITEM_LOOKUP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/items/item_tables.h"
#include "server/items/model_features.h"
#include "server/wire/predict_request.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::inference {

// The tables of a model, and what one version of it reads.
struct ItemSources {
  std::vector<items::ItemTableSource*> tables;  // must outlive all that is answered
  items::ModelFeatures features;
};

// Of one version of a model. All methods may be called from any thread.
class ItemLookup {
 public:
  using Signatures = google::protobuf::Map<std::string, tensorflow::SignatureDef>;

  // `signatures` must outlive it.
  ItemLookup(ItemSources sources, const Signatures& signatures);

  // Adds to a request with a key column the columns of the table's domain that it lacks and its
  // signature has, and takes the key's away unless it is an input itself. `*unknown_keys` becomes
  // how many keys have the defaults.
  //
  // INVALID_ARGUMENT, naming the key's column, for another rank or dtype and, with the first ten,
  // for unknown keys that are refused; FAILED_PRECONDITION if the table cannot be used.
  Status Fill(DecodedRequest* request, int64_t* unknown_keys) const;

  // The table that is used of each source; null where there is none.
  std::vector<std::shared_ptr<const items::ItemTable>> tables() const;

  // Adds the key columns that Fill() takes to the inputs of a signature that reads their tables.
  void AddKeys(tensorflow::SignatureDef* signature) const;

  // Why a table is not used for this version, a sentence each; empty if all are.
  std::vector<std::string> problems() const;

  // Implementation details follow.
 private:
  // A table that the model can be used with, and what its signatures read of it.
  struct Choice {
    const items::ItemTable* newest = nullptr;                          // what was looked at
    std::shared_ptr<const items::ItemTable> table;                     // null if there is none
    Status status;                                                     // why the newest is not used
    std::map<std::string, std::vector<size_t>, std::less<>> features;  // by signature
  };
  // What requests with the same columns to a signature want of a table.
  struct Wanted {
    std::string signature;
    bool by_key = false;           // there is a key, and the signature reads the table's domain
    size_t key = 0;                // its column
    bool is_input = false;         // which the signature reads, too
    std::vector<size_t> features;  // those that were left out
  };
  struct Table {
    items::ItemTableSource* source = nullptr;
    std::mutex mutex;
    std::shared_ptr<const Choice> choice;
  };

  std::shared_ptr<const Choice> Choose(Table* table) const;
  Wanted WantedOf(const Choice& choice, const std::string& key,
                  const DecodedRequest& request) const;
  Status FillFrom(Table* table, DecodedRequest* request, int64_t* unknown_keys) const;
  Status AddFeatures(const Choice& choice, const Wanted& wanted, items::ItemTableSource* source,
                     DecodedRequest* request, int64_t* unknown_keys) const;

  const items::ModelFeatures features_;
  const Signatures& signatures_;
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_ITEM_LOOKUP_H_
