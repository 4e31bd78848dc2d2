#include <doctest/doctest.h>

#include <limits>

#include "core/zo/options.hpp"

using namespace pmt;

namespace {

template <typename Edit>
Code code_of(Edit edit) {
  TrainerOptions options;
  edit(options);
  return check_options(options).code;
}

// The first value after the words.
template <typename Enumeration>
constexpr Enumeration beyond = static_cast<Enumeration>(words<Enumeration>.count);

}  // namespace

TEST_CASE("the default options are valid") { CHECK(check_options(TrainerOptions{}).ok()); }

TEST_CASE("options outside their ranges are refused") {
  using Options = TrainerOptions;
  CHECK(code_of([](Options& o) { o.queries = 0; }) == Code::option_queries);
  CHECK(code_of([](Options& o) { o.queries = 4097; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.queries = 1; }) == Code::ok);
  CHECK(code_of([](Options& o) { o.queries = 1, o.baseline = Baseline::leave_one_out; }) == Code::option_queries);
  CHECK(code_of([](Options& o) { o.mu_weight = 0; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.mu_node = 65; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.seed = 0; }) == Code::ok);
  CHECK(code_of([](Options& o) { o.seed = 0, o.generator = Generator::xorshift32; }) == Code::option_seed);
  CHECK(code_of([](Options& o) { o.generator = beyond<Generator>; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.scope = beyond<Scope>; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.step = beyond<Step>; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.train_bias = 2; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.node_ratio = 0.0f; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.node_ratio = std::numeric_limits<float>::quiet_NaN(); }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.rule = beyond<EstimatorRule>; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.bias_rate = 0.0f; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.head_rate = 1001.0f; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.head_rate = 1000.0f; }) == Code::ok);
  CHECK(code_of([](Options& o) { o.loss = beyond<Loss>; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.diversity = 10.5f; }) == Code::option_value);
  CHECK(code_of([](Options& o) { o.diversity = 10.0f; }) == Code::ok);
}
