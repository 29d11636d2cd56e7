// Fills in the columns that a request leaves out, from the model's item tables, by the keys that
// the request sends.
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

// The item tables of a model, and the features that one version of it reads.
struct ItemSources {
  std::vector<items::ItemTableSource*> tables;  // must outlive every answer
  items::ModelFeatures features;
};

// Belongs to one version of a model. All methods may be called from any thread.
class ItemLookup {
 public:
  using Signatures = google::protobuf::Map<std::string, tensorflow::SignatureDef>;

  // `signatures` must outlive this object.
  ItemLookup(ItemSources sources, const Signatures& signatures);

  // For each table whose key column the request has: adds the columns of the table's domain that
  // the signature reads and the request lacks, and removes the key column unless it is itself an
  // input. Sets `*unknown_keys` to the number of keys answered with defaults.
  //
  // Returns INVALID_ARGUMENT for a wrong rank or dtype, or for unknown keys if the table refuses
  // them. The message names the key column and the first ten unknown keys. Returns
  // FAILED_PRECONDITION if the model cannot use the table.
  Status Fill(DecodedRequest* request, int64_t* unknown_keys) const;

  // For each source the table in use; null where there is none.
  std::vector<std::shared_ptr<const items::ItemTable>> tables() const;

  // Adds to a signature's inputs the key columns of the tables that it reads.
  void AddKeys(tensorflow::SignatureDef* signature) const;

  // For each table that this version does not use, one sentence with the reason.
  std::vector<std::string> problems() const;

 private:
  // A table that the model can use, and the features that its signatures read from it.
  struct Choice {
    // The newest table, whether or not it is in use.
    const items::ItemTable* newest = nullptr;
    // The table in use; null if there is none.
    std::shared_ptr<const items::ItemTable> table;
    // Why the newest table is not used.
    Status status;
    // Feature indices by signature.
    std::map<std::string, std::vector<size_t>, std::less<>> features;
  };
  // What requests to one signature need from a table, if they have the same column names.
  struct Wanted {
    std::string signature;
    bool by_key = false;           // the key was sent, and the signature reads the table's domain
    size_t key = 0;                // index of the key column
    bool is_input = false;         // whether the signature reads the key column too
    std::vector<size_t> features;  // indices of the features that the request left out
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
