#include "server/engine/fuzz/example_oracle.h"

#include <cstring>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/util/example_proto_fast_parsing.h"

namespace colcast::fuzz {
namespace {

using tensorflow::DataType;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;

Tensor DefaultOf(const OracleFeature& feature, const TensorShape& shape) {
  const auto dtype = static_cast<DataType>(feature.dtype);
  if (feature.defaults.empty()) return Tensor(dtype, TensorShape({0}));
  Tensor tensor(dtype, shape);
  char* at = static_cast<char*>(tensor.data());
  for (size_t i = 0; i < feature.defaults.size(); ++i) {
    const std::string& value = feature.defaults[i];
    if (dtype == tensorflow::DT_STRING) {
      tensor.flat<tstring>()(i) = value;
    } else {
      std::memcpy(at, value.data(), value.size());
      at += value.size();
    }
  }
  return tensor;
}

void Read(const Tensor& tensor, OracleValues* values) {
  for (int64_t dim : tensor.shape().dim_sizes()) values->dims.push_back(dim);
  if (tensor.dtype() != tensorflow::DT_STRING) {
    values->memory = std::string(tensor.tensor_data());
    return;
  }
  const auto strings = tensor.flat<tstring>();
  for (int64_t i = 0; i < strings.size(); ++i) values->strings.emplace_back(strings(i));
}

}  // namespace

struct ExampleOracle::Config {
  tensorflow::example::FastParseExampleConfig parser;
  std::vector<OracleKind> kinds;
};

ExampleOracle::ExampleOracle(const std::vector<OracleFeature>& features)
    : config_(std::make_unique<Config>()) {
  for (const OracleFeature& feature : features) {
    config_->kinds.push_back(feature.kind);
    const auto dtype = static_cast<DataType>(feature.dtype);
    switch (feature.kind) {
      case OracleKind::kVarLen:
        config_->parser.sparse.emplace_back(feature.name, dtype);
        break;
      case OracleKind::kRagged:
        config_->parser.ragged.emplace_back(feature.name, dtype, tensorflow::DT_INT64);
        break;
      case OracleKind::kFixedLen:
      case OracleKind::kFixedLenSequence: {
        const TensorShape inner(feature.shape);
        const bool sequence = feature.kind == OracleKind::kFixedLenSequence;
        std::vector<int64_t> shape = feature.shape;
        if (sequence) shape.insert(shape.begin(), -1);
        config_->parser.dense.emplace_back(feature.name, dtype, PartialTensorShape(shape),
                                           DefaultOf(feature, sequence ? TensorShape({}) : inner),
                                           sequence, static_cast<size_t>(inner.num_elements()));
      }
    }
  }
}

ExampleOracle::~ExampleOracle() = default;

bool ExampleOracle::Parse(const std::vector<std::string>& examples,
                          std::vector<OracleValues>* values) const {
  const std::vector<tstring> serialized(examples.begin(), examples.end());
  tensorflow::example::Result result;
  if (!tensorflow::example::FastParseExample(config_->parser, serialized, {}, nullptr, &result)
           .ok()) {
    return false;
  }
  size_t sparse = 0, dense = 0, ragged = 0;
  values->clear();
  for (const OracleKind kind : config_->kinds) {
    OracleValues& value = values->emplace_back();
    if (kind == OracleKind::kVarLen) {
      Read(result.sparse_values[sparse], &value);
      value.lengths.assign(examples.size(), 0);
      const auto indices = result.sparse_indices[sparse].matrix<int64_t>();
      for (int64_t i = 0; i < indices.dimension(0); ++i) ++value.lengths[indices(i, 0)];
      value.longest = result.sparse_shapes[sparse++].vec<int64_t>()(1);
    } else if (kind == OracleKind::kRagged) {
      Read(result.ragged_values[ragged], &value);
      const auto splits = result.ragged_splits[ragged++].vec<int64_t>();
      for (size_t i = 0; i < examples.size(); ++i) {
        value.lengths.push_back(splits(i + 1) - splits(i));
      }
    } else {
      Read(result.dense_values[dense++], &value);
    }
  }
  return true;
}

}  // namespace colcast::fuzz
