// check_vectors FILE: checks that this client's requests equal the Python client's, byte for byte.
// Exits with 1 at the first request that differs.

#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "column_request.h"

namespace {

std::string Hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) (text += kDigits[byte >> 4]) += kDigits[byte & 15];
  return text;
}

std::string FromHex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<int64_t> Numbers(const std::string& list) {
  std::vector<int64_t> numbers;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) numbers.push_back(std::stoll(part));
  return numbers;
}

// Reads a column from the rest of a line, after the dtype, and adds it to the request.
void AddColumn(const std::string& dtype, std::istringstream* words,
               columns::ColumnRequest* request) {
  std::string name, dims;
  *words >> name >> dims;
  const std::vector<int64_t> shape = Numbers(dims);
  std::vector<int64_t> integers;
  std::vector<float> floats;
  std::vector<std::string> strings;
  for (std::string value; *words >> value;) {
    if (dtype == "int64") integers.push_back(std::stoll(value));
    if (dtype == "float32") floats.push_back(std::stof(value));
    if (dtype == "string") strings.push_back(FromHex(value));
  }
  if (dtype == "int64") request->Int64(name, integers, shape);
  if (dtype == "float32") request->Float32(name, floats, shape);
  if (dtype == "string") request->Strings(name, strings, shape);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: check_vectors FILE\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  std::optional<columns::ColumnRequest> request;
  std::string title;
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "request") {
      std::string model, signature;
      words >> title >> model >> signature;
      request.emplace(model, signature);
    } else if (first == "bytes") {
      std::string expected;
      words >> expected;
      if (Hex(request->bytes()) != expected) {
        std::cerr << title << ": got " << Hex(request->bytes()) << ", expected " << expected
                  << "\n";
        return 1;
      }
      ++compared;
    } else {
      AddColumn(first, &words, &*request);
    }
  }
  std::cout << compared << " requests are equal\n";
  return compared > 0 ? 0 : 1;
}
