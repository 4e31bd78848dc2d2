#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/train/allocation.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

std::vector<int32_t> allocated(std::vector<QueryDemand> layers, int32_t uniform) {
  allocate_queries(layers.data(), static_cast<int32_t>(layers.size()), uniform);
  std::vector<int32_t> queries;
  for (const QueryDemand& layer : layers) queries.push_back(layer.queries);
  return queries;
}

double total_error(const std::vector<QueryDemand>& layers, const std::vector<int32_t>& queries) {
  double error = 0.0;
  for (size_t i = 0; i < layers.size(); ++i) error += static_cast<double>(layers[i].error) / queries[i];
  return error;
}

int64_t total_macs(const std::vector<QueryDemand>& layers, const std::vector<int32_t>& queries) {
  int64_t macs = 0;
  for (size_t i = 0; i < layers.size(); ++i) macs += layers[i].macs * queries[i];
  return macs;
}

std::vector<QueryDemand> random_layers(RandomSource& random) {
  std::vector<QueryDemand> layers(static_cast<size_t>(random.integer(1, 14)));
  for (QueryDemand& layer : layers) {
    layer = {static_cast<float>(std::pow(10.0, random.real(-6.0, 6.0))), random.integer(100, 20000000), 0};
  }
  return layers;
}

}  // namespace

TEST_CASE("queries follow the root of error over multiply-accumulates") {
  CHECK(allocated({{1.0f, 1, 0}, {1.0f, 4, 0}}, 60) == std::vector<int32_t>{100, 50});
  CHECK(allocated({{9.0f, 10, 0}, {1.0f, 10, 0}}, 50) == std::vector<int32_t>{74, 26});
  CHECK(allocated({{5.0f, 7, 0}}, 33) == std::vector<int32_t>{32});
  CHECK(allocated({{1e-9f, 1, 0}, {1.0f, 1, 0}}, 10) == std::vector<int32_t>{4, 16});
  CHECK(allocated({{1.0f, 1, 0}, {1.0f, 4000, 0}}, 4000) == std::vector<int32_t>{4096, 3998});
}

TEST_CASE("nothing to go by, too few queries, or an exact layer leave the uniform number") {
  CHECK(allocated({{0.0f, 5, 0}, {0.0f, 3, 0}}, 50) == std::vector<int32_t>{50, 50});
  CHECK(allocated({{2.0f, 5, 0}, {1.0f, 3, 0}}, 3) == std::vector<int32_t>{3, 3});
  CHECK(allocated({{1.0f, 1, 0}, {0.0f, 0, 0}, {1.0f, 4, 0}}, 60) == std::vector<int32_t>{100, 60, 50});
  CHECK(allocated({{INFINITY, 1, 0}, {1.0f, 1, 0}}, 10) == std::vector<int32_t>{4, 16});
}

TEST_CASE("the budget holds and is spent, in pairs, and the error is that of the best real numbers") {
  RandomSource random(71);
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const std::vector<QueryDemand> layers = random_layers(random);
    const int32_t uniform = random.integer(4, 300);
    const std::vector<int32_t> queries = allocated(layers, uniform);
    const std::vector<int32_t> same(layers.size(), uniform);
    const int64_t left = total_macs(layers, same) - total_macs(layers, queries);
    CHECK(left >= 0);
    double roots = 0.0, bound = 0.0;
    for (size_t k = 0; k < layers.size(); ++k) {
      CHECK(queries[k] % 2 == 0);
      CHECK(queries[k] >= 4);
      CHECK((queries[k] == 4096 || 2 * layers[k].macs > left));
      roots += std::sqrt(static_cast<double>(layers[k].error) * static_cast<double>(layers[k].macs));
    }
    // Cauchy-Schwarz: no allocation under the budget has a smaller sum.
    bound = roots * roots / static_cast<double>(total_macs(layers, same));
    CHECK(total_error(layers, queries) >= bound * 0.999);
    if (uniform % 2 == 0) CHECK(total_error(layers, queries) <= total_error(layers, same) * 1.000001);
    if (*std::min_element(queries.begin(), queries.end()) >= 40 &&
        *std::max_element(queries.begin(), queries.end()) < 4096) {
      CHECK(total_error(layers, queries) <= bound * 1.03);
    }
  }
}
