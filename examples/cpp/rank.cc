// Ranks two movies for one user, then the same movies for two users: rank HOST:PORT MODEL. Prints
// one score per line.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstring>
#include <future>
#include <iomanip>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "column_request.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace {

using columns::ColumnRequest;
using tensorflow::serving::PredictResponse;
using Integers = std::vector<int64_t>;

const Integers kAges = {31, 54};
const std::vector<std::string> kCities = {"Łódź", "Oslo"};
const Integers kHistory = {4, 8, 15, 16};
const Integers kLengths = {2, 1};

// Makes a request to rank two movies for one or two users; with two, movie i is for user i.
ColumnRequest Request(const std::string& model, size_t users) {
  const int64_t rows = static_cast<int64_t>(users);
  ColumnRequest request(model, "columnar");
  request.Int64("age", {kAges.data(), users}, Integers{rows});
  request.Strings("city", {kCities.data(), users}, Integers{rows});
  request.Int64("history", {kHistory.data(), 2 * users}, Integers{rows, 2});
  request.Int64("history/length", {kLengths.data(), users}, Integers{rows});
  request.Int64("movie", Integers{7, 9}, Integers{2});
  request.Strings("genres", std::vector<std::string>{"War", "", "Noir", "War"}, Integers{2, 2});
  request.Int64("genres/length", Integers{1, 2}, Integers{2});
  request.Float32("vector", std::vector<float>{1, 2, 3, 4, 5, 6}, Integers{2, 3});
  if (users > 1) request.RowTo("user", Integers{0, 1});
  return request;
}

// Sends an encoded request. Throws std::runtime_error with the server's message.
PredictResponse Predict(grpc::GenericStub* stub, const std::string& bytes) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer answer;
  std::promise<grpc::Status> done;
  stub->UnaryCall(&context, "/tensorflow.serving.PredictionService/Predict", grpc::StubOptions(),
                  &request, &answer,
                  [&done](grpc::Status status) { done.set_value(std::move(status)); });
  const grpc::Status status = done.get_future().get();
  if (!status.ok()) throw std::runtime_error(status.error_message());
  PredictResponse response;
  grpc::Slice whole;
  if (!answer.DumpToSingleSlice(&whole).ok() ||
      !response.ParseFromArray(whole.begin(), static_cast<int>(whole.size()))) {
    throw std::runtime_error("the answer is not a PredictResponse");
  }
  return response;
}

// Reads floats in either of the two forms that servers send.
std::vector<float> Floats(const tensorflow::TensorProto& tensor) {
  if (tensor.float_val_size() > 0) return {tensor.float_val().begin(), tensor.float_val().end()};
  std::vector<float> values(tensor.tensor_content().size() / sizeof(float));
  std::memcpy(values.data(), tensor.tensor_content().data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: rank HOST:PORT MODEL\n";
    return 2;
  }
  std::cout << std::setprecision(std::numeric_limits<float>::max_digits10);
  grpc::GenericStub stub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  try {
    for (const size_t users : {1, 2}) {
      const PredictResponse answer = Predict(&stub, Request(argv[2], users).bytes());
      for (const float score : Floats(answer.outputs().at("scores"))) std::cout << score << "\n";
    }
  } catch (const std::exception& error) {
    std::cerr << "rank: " << error.what() << "\n";
    return 1;
  }
}
