// Tensors of literal values, for tests.
#ifndef COLCAST_SERVER_ENGINE_TENSOR_TESTING_H_
#define COLCAST_SERVER_ENGINE_TENSOR_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

template <typename T>
tensorflow::Tensor AsTensor(const std::vector<T>& values, const std::vector<int64_t>& dims) {
  tensorflow::Tensor tensor(tensorflow::DataTypeToEnum<T>::value, tensorflow::TensorShape(dims));
  std::copy(values.begin(), values.end(), tensor.flat<T>().data());
  return tensor;
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_TENSOR_TESTING_H_
