// Looks up a request's keys in the model's item tables, and adds the columns that the request
// leaves out.
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
#include "server/items/item_columns.h"
#include "server/items/item_tables.h"
#include "server/wire/predict_request.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::inference {

// A model's item tables, and the features that one of its versions reads.
struct ItemSources {
  std::vector<items::ItemTableSource*> tables;  // must outlive ItemLookup and all requests
  items::ModelFeatures features;
};

// Belongs to one version of a model. All methods may be called from any thread.
class ItemLookup {
 public:
  using Signatures = google::protobuf::Map<std::string, tensorflow::SignatureDef>;

  // `signatures` must outlive this object.
  ItemLookup(ItemSources sources, const Signatures& signatures);

  // For each table whose key column is in the request: adds the columns of the table's domain that
  // the signature reads and the request lacks, and removes the key column unless the signature
  // reads it too. Sets `*unknown_keys` to the number of keys that got default values.
  //
  // Returns INVALID_ARGUMENT if the key column has a wrong rank or dtype, or if it has unknown keys
  // and the table refuses them; the message names the key column and up to ten unknown keys.
  // Returns FAILED_PRECONDITION if the model cannot use the table. REQUIRES a signature of the
  // model.
  Status Fill(const tensorflow::SignatureDef& signature, DecodedRequest* request,
              int64_t* unknown_keys) const;

  // For each table that a signature reads, adds the key column to the signature's inputs.
  void AddKeys(tensorflow::SignatureDef* signature) const;

  // For each table that this version cannot use, a sentence with the reason.
  std::vector<std::string> problems() const;

 private:
  // The table that is in use, and which of its features each signature reads.
  struct Choice {
    // The newest table, whether or not it is in use.
    std::weak_ptr<const items::ItemTable> newest;
    // The table in use; null if there is none.
    std::shared_ptr<const items::ItemTable> table;
    // Why the newest table is not in use; OK if it is.
    Status status;
    // Indices of the features that each signature reads.
    std::map<const tensorflow::SignatureDef*, std::vector<size_t>> features;
  };
  // What a table adds to requests that call the same signature with the same column names.
  struct Wanted {
    const tensorflow::SignatureDef* signature = nullptr;
    bool by_key = false;           // the request has the key, and the signature reads the table
    size_t key = 0;                // index of the key column
    bool is_input = false;         // the signature also reads the key column
    std::vector<size_t> features;  // features that the signature reads and the request lacks
  };
  struct Table {
    items::ItemTableSource* source = nullptr;
    std::mutex mutex;
    std::shared_ptr<const Choice> choice;
  };

  std::shared_ptr<const Choice> Choose(Table* table) const;
  static Wanted WantedOf(const Choice& choice, const std::string& key,
                         const tensorflow::SignatureDef& signature, const DecodedRequest& request);
  Status FillFrom(Table* table, const tensorflow::SignatureDef& signature, DecodedRequest* request,
                  int64_t* unknown_keys) const;
  Status AddFeatures(const Choice& choice, const Wanted& wanted, items::ItemTableSource* source,
                     DecodedRequest* request, int64_t* unknown_keys) const;

  const items::ModelFeatures features_;
  const Signatures& signatures_;
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_ITEM_LOOKUP_H_
