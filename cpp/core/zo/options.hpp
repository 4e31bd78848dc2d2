// Every choice of the trainer is a switch; presets (paper, default) are values of this struct. An
// option's range or words stand here and nowhere else: check_options(), the bindings and, through
// them, Python's checks and help texts read for_each_option().
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/base/words.hpp"
#include "core/zo/perturbation.hpp"

namespace pmt {

PMT_WORDS(Scope, layer_wise, model_wise);

// The stand-in for the loss at the unperturbed point.
PMT_WORDS(Baseline, clean, leave_one_out);

// antithetic: queries 2k and 2k + 1 take direction k, forwards and backwards.
PMT_WORDS(Pairs, one_sided, antithetic);

// Which estimator a layer gets. by_dimension: node perturbation where
// node_dimension < node_ratio * weight_dimension (paper section 3.2.2: ratio 1). pooled: node perturbation by one
// sign a channel.
PMT_WORDS(EstimatorRule, by_dimension, weight, node, pooled);
PMT_WORDS(NodeDimension, output, input);

// The nodes that node perturbation moves. free: those that no clamp holds, as pooled always does.
PMT_WORDS(PerturbedNodes, all, free);

// Weight perturbations of a batch: one set for all samples, or one for each.
PMT_WORDS(Sharing, per_sample, batch);

// Gradient-norm scaling, paper section 3.1.2: factor k / (k + d - 1). directions: k of those that were drawn, one
// a query where the batch shares them, and d of the entries that each of them moves.
PMT_WORDS(GradientNormScaling, none, queries_and_samples, queries, directions);

PMT_WORDS(Rounding, nearest, stochastic);

// gradient: learning_rate times the scaled gradient. normalized: the layer's update is scaled so
// that its root mean square is learning_rate quantization steps.
PMT_WORDS(Step, gradient, normalized);

// The score that training lowers, see loss.hpp. function: a callable of the host's.
PMT_WORDS(Loss, cross_entropy, squared_error, binary_cross_entropy, entropy, function);

struct TrainerOptions {
  uint32_t seed = 1;
  int32_t queries = 100;  // per layer and sample
  int32_t mu_weight = 1;  // perturbation size in weight steps
  int32_t mu_node = 1;    // in output steps
  int32_t mu_bias = 0;    // in bias steps; 0: mu_weight output steps
  Generator generator = Generator::philox;
  Pairs pairs = Pairs::one_sided;
  Scope scope = Scope::layer_wise;
  Baseline baseline = Baseline::clean;
  EstimatorRule rule = EstimatorRule::by_dimension;
  NodeDimension node_dimension = NodeDimension::output;
  float node_ratio = 1.0f;
  PerturbedNodes nodes = PerturbedNodes::free;
  Sharing sharing = Sharing::per_sample;
  uint32_t separate_biases = 0;  // weight perturbation: half of the queries move weights, the others biases
  GradientNormScaling gradient_norm_scaling = GradientNormScaling::none;
  uint32_t quantization_aware_scaling = 1;  // divide by the squared weight scale
  Rounding rounding = Rounding::nearest;
  Step step = Step::gradient;
  uint32_t train_bias = 1;
  uint32_t train_weights = 1;  // 0: biases alone
  float bias_rate = 1.0f;      // learning rate of biases whose gradient is estimated, as a multiple
  float head_rate = 1.0f;      // of a layer whose gradient is exact, weights and biases, as a multiple
  Loss loss = Loss::cross_entropy;
  float diversity = 0.0f;  // of entropy: weight of the mean prediction's negative entropy
};
static_assert(sizeof(TrainerOptions) == 100, "written into the firmware's data file as it is");

constexpr int32_t most_queries = 4096;
constexpr int32_t largest_mu = 64;
constexpr int32_t largest_bias_mu = 1 << 20;
constexpr float largest_diversity = 10.0f;
constexpr float largest_rate = 1000.0f;
constexpr float largest_float = 3.40282347e38f;

// An interval, closed unless an end is open. It never contains NaN.
template <typename T>
struct Range {
  T low;
  T high;
  bool low_open = false;
  bool high_open = false;
  constexpr bool holds(T x) const { return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high); }
};

// Calls visit(name, member, values) for every option; values are a Range, or the Words of an enumeration.
template <typename Visitor>
constexpr void for_each_option(Visitor visit) {
  using O = TrainerOptions;
  constexpr Range<uint32_t> flag = {0, 1};
  visit("seed", &O::seed, Range<uint32_t>{0, UINT32_MAX});
  visit("queries", &O::queries, Range<int32_t>{1, most_queries});
  visit("mu_weight", &O::mu_weight, Range<int32_t>{1, largest_mu});
  visit("mu_node", &O::mu_node, Range<int32_t>{1, largest_mu});
  visit("mu_bias", &O::mu_bias, Range<int32_t>{0, largest_bias_mu});
  visit("generator", &O::generator, words<Generator>);
  visit("pairs", &O::pairs, words<Pairs>);
  visit("scope", &O::scope, words<Scope>);
  visit("baseline", &O::baseline, words<Baseline>);
  visit("rule", &O::rule, words<EstimatorRule>);
  visit("node_dimension", &O::node_dimension, words<NodeDimension>);
  visit("node_ratio", &O::node_ratio, Range<float>{0.0f, largest_float, true});
  visit("nodes", &O::nodes, words<PerturbedNodes>);
  visit("sharing", &O::sharing, words<Sharing>);
  visit("separate_biases", &O::separate_biases, flag);
  visit("gradient_norm_scaling", &O::gradient_norm_scaling, words<GradientNormScaling>);
  visit("quantization_aware_scaling", &O::quantization_aware_scaling, flag);
  visit("rounding", &O::rounding, words<Rounding>);
  visit("step", &O::step, words<Step>);
  visit("train_bias", &O::train_bias, flag);
  visit("train_weights", &O::train_weights, flag);
  constexpr Range<float> rate = {0.0f, largest_rate, true};
  visit("bias_rate", &O::bias_rate, rate);
  visit("head_rate", &O::head_rate, rate);
  visit("loss", &O::loss, words<Loss>);
  visit("diversity", &O::diversity, Range<float>{0.0f, largest_diversity});
}

// Whether weights and biases have queries of their own.
bool parts_queries(const TrainerOptions& options);

// Minimum queries of a layer and sample: 2 to be compared with one another or to be parted, twice as many of pairs.
int32_t least_queries(const TrainerOptions& options);

// Whether the loss has a gradient by the logits, which makes that of a linear head exact.
bool has_gradient(Loss loss);

// Whether the loss reads labels; a function of the host's may, and gets those that there are.
bool needs_labels(Loss loss);

// Whether the loss compares each logit with a target of its own, so that any targets may stand in for labels.
bool takes_targets(Loss loss);

// Whether the step keeps the mean prediction of the one before.
bool keeps_prediction(const TrainerOptions& options);

// An option outside its own range is option_value, with its place in for_each_option() as the index.
Status check_options(const TrainerOptions& options);

}  // namespace pmt
