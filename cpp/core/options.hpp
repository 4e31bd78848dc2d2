// Every choice of the trainer is a switch; presets (paper, default) are values of this struct.
#pragma once

#include <cstdint>

#include "core/perturbation.hpp"
#include "core/status.hpp"

namespace pmt {

enum class Scope : uint32_t { layer_wise = 0, model_wise = 1 };

// What stands for the loss at the unperturbed point.
enum class Baseline : uint32_t { clean = 0, leave_one_out = 1 };

// Directions of a layer's queries. rademacher: independent random signs. hadamard: rows of a Hadamard
// matrix times one set of random signs, orthogonal to one another. coordinate: one weight, bias or
// node a query (coordinate-wise gradient estimation); `queries` does not count, and the losses are
// compared with the clean one.
enum class Directions : uint32_t { rademacher = 0, hadamard = 1, coordinate = 2 };

// antithetic: queries 2k and 2k + 1 take direction k, forwards and backwards.
enum class Pairs : uint32_t { one_sided = 0, antithetic = 1 };

// Hadamard rows of a sample. per_sample: from row 0, with signs of its own. running: from where the
// sample before it stopped, with the signs of all; the batch's directions are then orthogonal too.
enum class HadamardIndex : uint32_t { per_sample = 0, running = 1 };

// Which estimator a layer gets. by_dimension: node perturbation where
// node_dimension < node_ratio * weight_dimension (paper section 3.2.2: ratio 1). measured: the one
// whose squared error is smaller, by probing.
enum class EstimatorRule : uint32_t { by_dimension = 0, weight = 1, node = 2, measured = 3 };
enum class NodeDimension : uint32_t { output = 0, input = 1 };

// Weight perturbations of a batch: one set for all samples, or one for each.
enum class Sharing : uint32_t { per_sample = 0, batch = 1 };

// Gradient-norm scaling, paper section 3.1.2: factor k / (k + d - 1). measured: the share of a layer's
// gradient that is no noise, from the losses' own differences (see shrinkage.hpp).
enum class GradientNormScaling : uint32_t { none = 0, queries_and_samples = 1, queries = 2, measured = 3 };

enum class Rounding : uint32_t { nearest = 0, stochastic = 1 };

// gradient: learning_rate times the scaled gradient. normalised: the layer's update is scaled so
// that its root mean square is learning_rate quantisation steps.
enum class Step : uint32_t { gradient = 0, normalised = 1 };

// Queries of a layer: the same for all, or, at the same sum of multiply-accumulates, as many as make
// the summed squared error of the gradients smallest. See calibration.hpp for what is measured.
enum class Allocation : uint32_t { uniform = 0, variance = 1 };

// Perturbation size of a layer: the options' mu, or the smallest of 1, 2, 4 and 8 at which the
// rounding noise of int8 is no more than half of the signal.
enum class MuRule : uint32_t { fixed = 0, calibrated = 1 };
// What stands between a gradient and its step: nothing, the sum of earlier gradients fading by
// `momentum`, or Adam.
enum class Optimiser : uint32_t { sgd = 0, momentum = 1, adam = 2 };

struct TrainerOptions {
  uint32_t seed = 1;
  int32_t queries = 100;  // per layer and sample
  int32_t mu_weight = 1;  // perturbation size in weight steps
  int32_t mu_node = 1;    // in output steps
  Generator generator = Generator::philox;
  Directions directions = Directions::rademacher;
  Pairs pairs = Pairs::one_sided;
  HadamardIndex hadamard_index = HadamardIndex::per_sample;
  float sparsity = 0.0f;      // share of a layer's weights that a step leaves out, 0 .. below 1
  int32_t mask_interval = 1;  // steps from one draw of what is left out to the next
  Scope scope = Scope::layer_wise;
  Baseline baseline = Baseline::clean;
  EstimatorRule rule = EstimatorRule::by_dimension;
  NodeDimension node_dimension = NodeDimension::output;
  float node_ratio = 1.0f;
  Sharing sharing = Sharing::per_sample;
  GradientNormScaling gradient_norm_scaling = GradientNormScaling::none;
  uint32_t quantisation_aware_scaling = 1;  // divide by the squared weight scale, 0 or 1
  Rounding rounding = Rounding::nearest;
  Step step = Step::gradient;
  uint32_t train_bias = 1;              // 0 or 1
  uint32_t int8_logits = 0;             // 1: the loss sees the int8 output
  int32_t weight_tile_bytes = 1 << 16;  // perturbed weights made at once; does not change the result
  Allocation allocation = Allocation::uniform;
  MuRule mu = MuRule::fixed;
  uint32_t mu_per_channel = 0;  // 1: mu_weight is scaled by channel, see channel_mu()
  int32_t probe_samples = 32;   // of a measurement
  int32_t probe_queries = 16;   // of each sample, layer, estimator and mu that is measured
  uint32_t train_weights = 1;   // 0 or 1; 0: biases alone
  Optimiser optimiser = Optimiser::sgd;
  float momentum = 0.9f;          // 0 .. below 1; Adam's beta 1
  float adam_beta2 = 0.999f;      // 0 .. below 1
  float shrinkage_memory = 0.9f;  // of measured gradient-norm scaling, from step to step; 0 .. below 1
};
static_assert(sizeof(TrainerOptions) == 132, "written into the firmware's data file as it is");

constexpr int32_t most_queries = 4096;
constexpr int32_t largest_mu = 64;

// Of one layer and sample: leave-one-out compares two.
int32_t least_queries(const TrainerOptions& options);

// Allocation, mu or rule are measured: the layers' settings come from calibrate().
bool is_measured(const TrainerOptions& options);

Status check_options(const TrainerOptions& options);

}  // namespace pmt
