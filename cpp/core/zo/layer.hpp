// A layer under training.
#pragma once

#include "core/net/network.hpp"
#include "core/zo/options.hpp"

namespace pmt {

// closed_form is a linear head's: the loss's gradient by the logits is known exactly.
PMT_WORDS(Estimator, weight_perturbation, node_perturbation, closed_form, pooled_perturbation)

struct Layer {
  int32_t op;
  Estimator estimator;
  int32_t weight_count;
  int32_t node_count;  // output elements
  int32_t channels;    // output channels
  int8_t* weights;     // writable parameters, which the network also reads
  int32_t* bias;
  int32_t queries;
  int32_t mu_weight;
  int32_t mu_node;
};
template <>
inline constexpr size_t size_on_device<Layer> = 40;

// Where a layer's trained parameters live; the caller has filled them with the start values.
struct LayerStorage {
  int8_t* weights;
  int32_t* bias;
};
template <>
inline constexpr size_t size_on_device<LayerStorage> = 8;

// Whether all samples of a batch have the same perturbations, and a layer so one difference a query.
bool shares_perturbations(const TrainerOptions& options, Estimator estimator);

// Applies the options' rule. The head is always closed_form unless `rule` is weight. Where biases
// alone are trained, by_dimension is always weight perturbation (of the biases): a bias moves all the
// positions of its channel, and node perturbation would need a query for each.
Estimator choose_estimator(const Model& model, int32_t op, const TrainerOptions& options);

// A layer under training, as the options have it; parameters as in its storage.
Layer make_layer(const Model& model, int32_t op, const TrainerOptions& options, const LayerStorage& storage);

// Weights and biases that are trained.
inline int32_t trained_weights(const TrainerOptions& options, const Layer& layer) {
  return options.train_weights != 0 ? layer.weight_count : 0;
}
inline int32_t trained_biases(const TrainerOptions& options, const Layer& layer) {
  return options.train_bias != 0 ? layer.channels : 0;
}

// mu output steps in bias steps (s_x * s_w), at least one; 0 for a dead channel.
int32_t bias_mu(const Model& model, const OpRecord& op, int32_t channel, int32_t mu);

// Size of a bias perturbation in bias steps, as the options have it; 0 for a dead channel.
int32_t bias_mu(const Model& model, const Layer& layer, const TrainerOptions& options, int32_t channel);

}  // namespace pmt
