// A gradient estimate by its definition: every query runs a whole perturbed network.
#pragma once

#include <vector>

#include "core/train/trainer.hpp"
#include "tests/reference_network.hpp"

namespace pmt::tests {

struct Sums {
  std::vector<double> weights, bias;
};

// mu output steps in bias steps; at least 1, and 0 for a dead channel.
double bias_step(const Model& model, const OpRecord& op, size_t channel, int32_t mu);

class ReferenceEstimate {
 public:
  // The trainer gives the layers, their estimators and the options; nothing is computed by it.
  ReferenceEstimate(const Trainer& trainer, const Samples& samples, uint32_t step);

  // Fixed-point loss of a sample with some of the trainer's layers perturbed.
  int32_t query_loss(const LayerRange& perturbed, const QueryId& id) const;

  // Fixed-point loss of a sample on the weights as they are.
  int32_t clean_loss(uint32_t sample) const;

  // Gradient sums of a layer from given differences of one sample, [query].
  Sums weight_sums(int32_t layer, uint32_t sample, const std::vector<double>& differences) const;
  // Of node perturbation; pooled, 64 times.
  Sums node_sums(int32_t layer, uint32_t sample, const std::vector<double>& differences) const;
  Sums head_sums(int32_t layer, uint32_t sample) const;

  // Losses of a sample's queries without the baseline, [query].
  std::vector<double> differences(int32_t layer, uint32_t sample) const;

  // A layer's output in the main pass.
  const reference::Image& clean_nodes(int32_t layer, uint32_t sample) const;

  // The sums that Trainer::estimate leaves: queries, baseline, and the sum over the batch.
  Sums sums(int32_t layer) const;

 private:
  using Tensors = std::vector<reference::Image>;

  const Layer& layer(int32_t index) const { return trainer_.layer(index); }
  double size_of_bias(const Layer& layer, size_t channel) const;
  bool moves(const QueryId& id, Purpose purpose) const;
  uint32_t owner(const Layer& layer, uint32_t sample) const;
  reference::Vector<int8_t> direction(const Layer& layer, const QueryId& id, Purpose purpose, int32_t count) const;
  std::vector<OpParameters> perturbed_parameters(const LayerRange& perturbed, const QueryId& id) const;
  reference::Vector<int8_t> node_signs(const Layer& layer, const QueryId& id) const;
  xt::xtensor<double, 3> node_gradient(const Layer& layer, uint32_t sample,
                                       const std::vector<double>& differences) const;
  void perturb_nodes(const Layer& layer, const QueryId& id, reference::Image& nodes) const;
  Sums through_layer(const Layer& layer, const xt::xtensor<double, 3>& nodes, const reference::Image& input) const;
  int32_t loss_of(const std::vector<float>& logits, uint32_t sample) const;

  const Trainer& trainer_;
  const Model& model_;
  const TrainerOptions& options_;
  const Samples& samples_;
  uint32_t step_;
  std::vector<OpParameters> parameters_;
  std::vector<Tensors> clean_;  // by sample
};

}  // namespace pmt::tests
