// Everything that the gRPC and HTTP endpoints need to answer requests.
#ifndef COLCAST_SERVER_BACKEND_H_
#define COLCAST_SERVER_BACKEND_H_

#include <atomic>
#include <cstddef>
#include <limits>

#include "server/inference/servable.h"
#include "server/items/item_tables.h"
#include "server/metrics/metrics.h"
#include "server/models/model_manager.h"
#include "server/request_log/request_logs.h"
#include "server/scheduling/worker_pool.h"
#include "server/tracing/tracer.h"
#include "server/wire/predict_response.h"

namespace colcast {

// All pointers must outlive the endpoints.
struct Backend {
  models::ModelManager* models = nullptr;
  const models::ServingTable* served = nullptr;  // belongs to `models`
  scheduling::WorkerPool* workers = nullptr;
  scheduling::WorkerPool* readers = nullptr;  // reads request bodies; see api::ReadAndRun()
  metrics::Metrics* metrics = nullptr;
  request_log::RequestLogs* request_logs = nullptr;
  const items::ItemTables* item_tables = nullptr;
  tracing::Tracer* tracer = nullptr;  // null if nothing is traced
  std::string caller_header;          // in lower case; empty if callers are not distinguished
  TensorEncoding encoding = TensorEncoding::kTypedFields;
  inference::CallOptions calls;
  size_t max_request_bytes = std::numeric_limits<size_t>::max();  // gRPC only; after decompression
  size_t max_request_columns = std::numeric_limits<size_t>::max();
  const std::atomic<bool>* ready = nullptr;  // true while the models serve, until shutdown begins
};

}  // namespace colcast

#endif  // COLCAST_SERVER_BACKEND_H_
