// Reads the tf.Examples of a request into columns, instead of the graph's parse op, for a
// tf.Example signature that has a columnar equivalent in the same model (docs/late.md).
#ifndef COLCAST_SERVER_ENGINE_EXAMPLES_EXAMPLE_TRANSCODER_H_
#define COLCAST_SERVER_ENGINE_EXAMPLES_EXAMPLE_TRANSCODER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/map.h"
#include "server/engine/record/row_record.h"
#include "server/states/keys.h"
#include "server/wire/example_decoder.h"
#include "server/wire/example_features.h"
#include "server/wire/predict_request.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

using SignatureDefs = google::protobuf::Map<std::string, tensorflow::SignatureDef>;

// Converts columns that repeat each user on every row, as tf.Examples do, to one row per user plus
// row_to_user (server/engine/program/domains.h). Can be reused for further requests.
class DistinctUsers {
 public:
  // Below this average number of rows per user, deduplication saves little.
  static constexpr int64_t kFewestRowsPerUser = 2;

  // Two rows belong to the same user if they have equal bytes in all columns that `of_user` marks
  // by position. In those columns, keeps only each user's first row, in order of first occurrence;
  // adds the column row_to_user. Other columns and columns of one row do not change. Views into
  // this object and into `columns` are valid until the next call.
  //
  // Returns false, without changes, below kFewestRowsPerUser. REQUIRES columns of `rows` rows or
  // one row, with numbers in tensor_content and strings as ExampleDecoder makes them.
  bool KeepOnce(const std::vector<bool>& of_user, int64_t rows, DecodedRequest* columns);

 private:
  bool TellApart(const std::vector<bool>& of_user, int64_t rows, const DecodedRequest& columns);

  const states::KeyHash hash_;
  states::RowKeys row_keys_;
  std::vector<states::Key> keys_;
  std::vector<int64_t> first_rows_;   // per user
  std::vector<int64_t> row_to_user_;  // per row
};

class ExampleTranscoder {
 public:
  // The result of transcoding a request; each thread reuses one.
  struct Scratch {
    std::vector<Bytes> examples;
    ExampleDecoder decoder;
    DecodedRequest columns;
    DistinctUsers users;
    bool user_once = false;  // the columns fit the late signature
  };

  // Returns FAILED_PRECONDITION, with the reason, unless the signatures are as the exporter writes
  // them: the source has one vector of strings as its only input, the columnar signature has the
  // columns of the recorded features, and both have the same outputs.
  static absl::StatusOr<std::unique_ptr<const ExampleTranscoder>> Create(
      const RecordedSignatures& converted, const SignatureDefs& signatures);

  // Names of the signatures. late() is empty if no late signature fits.
  const std::string& source() const { return source_; }
  const std::string& columnar() const { return columnar_; }
  const std::string& late() const { return late_; }

  // Reads a request for the source signature into `scratch->columns`, including its output_filter.
  // Returns false if the graph's parse op must read it: if the input is not a vector of strings, or
  // if ExampleDecoder refuses it.
  bool Transcode(const DecodedRequest& request, Scratch* scratch) const;

  // In the columns that the late signature takes as one row, keeps one row per user; also adds
  // row_to_user. Returns false, without changes, if users hardly repeat. REQUIRES late().
  bool KeepUsersOnce(Scratch* scratch) const {
    const auto rows = static_cast<int64_t>(scratch->examples.size());
    return scratch->users.KeepOnce(once_, rows, &scratch->columns);
  }

 private:
  ExampleTranscoder() = default;

  bool TakeExamples(const DecodedRequest& request, std::vector<Bytes>* examples) const;
  bool FitsLate(Span<Column> columns) const;

  std::string source_;
  std::string source_input_;
  std::string columnar_;
  std::string late_;
  std::vector<bool> once_;  // per column: whether the late signature takes one row
  std::unique_ptr<const ExampleFeatures> features_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_EXAMPLES_EXAMPLE_TRANSCODER_H_
