// What the processes of one run say to each other: a process for each GPU of a host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstring>
#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::train {

// Every rank calls the same, in the same order. Sums are the same on every rank, and in every run. An error
// names the rank that is gone or has not answered.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t count() const = 0;
  // flat: [borders.back()]. Rank r's elements [borders[r], borders[r + 1]) become the sum over all ranks; its
  // others are undefined.
  virtual Status sum_to_owners(const at::Tensor& flat, const std::vector<int64_t>& borders) = 0;
  // The other way: rank r's elements are copied to all.
  virtual Status share_from_owners(const at::Tensor& flat, const std::vector<int64_t>& borders) = 0;
  // values: a few numbers on the host, summed in place.
  virtual Status sum(std::vector<double>& values) = 0;
  // Everybody's bytes, in the order of ranks.
  virtual Result<std::vector<std::string>> gather(std::string mine) = 0;
};

// The same for plain numbers, all one after the other.
template <typename T>
Result<std::vector<T>> gather_numbers(Ranks& ranks, const std::vector<T>& mine) {
  std::string bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(T));
  NEREID_TRY(const auto parts, ranks.gather(std::move(bytes)));
  std::vector<T> all;
  for (const std::string& part : parts) {
    const size_t before = all.size();
    all.resize(before + part.size() / sizeof(T));
    std::memcpy(all.data() + before, part.data(), part.size());
  }
  return all;
}

// One process.
class Alone final : public Ranks {
 public:
  int64_t rank() const override { return 0; }
  int64_t count() const override { return 1; }
  Status sum_to_owners(const at::Tensor&, const std::vector<int64_t>&) override { return ok_status(); }
  Status share_from_owners(const at::Tensor&, const std::vector<int64_t>&) override { return ok_status(); }
  Status sum(std::vector<double>&) override { return ok_status(); }
  Result<std::vector<std::string>> gather(std::string mine) override {
    return std::vector<std::string>{std::move(mine)};
  }
};

}  // namespace nereid::train
