#include "tests/reference_estimate.hpp"

#include <algorithm>
#include <climits>
#include <cmath>
#include <functional>

#include "core/zo/estimated.hpp"
#include "core/zo/loss.hpp"
#include "reference/training_step.hpp"

namespace pmt::tests {
namespace {

double halves_away_from_zero(double value) { return std::round(value); }

template <typename Values>
std::vector<double> in_order(const Values& values) {
  return {values.begin(), values.end()};
}

void add(Sums& total, const Sums& more) {
  if (total.weights.empty()) {
    total = more;
    return;
  }
  std::transform(more.weights.begin(), more.weights.end(), total.weights.begin(), total.weights.begin(), std::plus<>());
  std::transform(more.bias.begin(), more.bias.end(), total.bias.begin(), total.bias.begin(), std::plus<>());
}

// A fully connected op is a convolution whose kernel covers its input.
Window window_of(const OpRecord& op, const reference::Image& input) {
  if (op.kind == OpKind::fully_connected) {
    return {static_cast<int32_t>(input.shape(0)), static_cast<int32_t>(input.shape(1)), 1, 1, 0, 0};
  }
  return {op.kernel_h, op.kernel_w, op.stride_h, op.stride_w, op.pad_top, op.pad_left};
}

}  // namespace

double bias_step(const Model& model, const OpRecord& op, size_t channel, int32_t mu) {
  const float weight_scale = model.weight_scales(op)[channel];
  if (weight_scale < 1e-6f) return 0.0;
  const float steps = static_cast<float>(mu) * model.output_of(op).scale / (model.input_of(op).scale * weight_scale);
  return std::max(1.0, static_cast<double>(std::nearbyint(steps)));
}

double ReferenceEstimate::size_of_bias(const Layer& layer, size_t channel) const {
  const OpRecord& op = model_.op(layer.op);
  if (options_.mu_bias == 0) return bias_step(model_, op, channel, layer.mu_weight);
  return model_.weight_scales(op)[channel] < 1e-6f ? 0.0 : options_.mu_bias;
}

ReferenceEstimate::ReferenceEstimate(const Trainer& trainer, const Samples& samples, uint32_t step)
    : trainer_(trainer),
      model_(*trainer.network().model),
      options_(*trainer.context().options),
      samples_(samples),
      step_(step),
      parameters_(parameters_of(model_)) {
  for (const std::vector<int8_t>& image : samples.images) clean_.push_back(run_reference(model_, parameters_, image));
}

std::vector<OpParameters> ReferenceEstimate::perturbed_parameters(const LayerRange& perturbed,
                                                                  const QueryId& id) const {
  std::vector<OpParameters> parameters = parameters_;
  for (int32_t i = perturbed.first; i <= perturbed.last; ++i) {
    const Layer& one = layer(i);
    if (one.estimator != Estimator::weight_perturbation) continue;
    OpParameters& own = parameters[static_cast<size_t>(one.op)];
    if (options_.train_weights != 0) {
      const auto signs = direction(one, id, Purpose::weight_signs, one.weight_count);
      const auto weights = tensor_of<reference::Vector<int8_t>>(own.weights, {own.weights.size()});
      const auto moved = reference::perturb(weights, signs, one.mu_weight, -127, 127);
      std::copy(moved.begin(), moved.end(), own.weights.begin());
    }
    if (options_.train_bias == 0) continue;
    const auto bias_signs = direction(one, id, Purpose::bias_signs, one.channels);
    for (size_t c = 0; c < own.bias.size(); ++c) {
      const double bias = own.bias[c] + bias_signs(c) * size_of_bias(one, c);
      own.bias[c] = static_cast<int32_t>(std::clamp<double>(bias, INT_MIN, INT_MAX));
    }
  }
  return parameters;
}

reference::Vector<int8_t> ReferenceEstimate::node_signs(const Layer& layer, const QueryId& id) const {
  if (layer.estimator == Estimator::node_perturbation)
    return direction(layer, id, Purpose::node_signs, layer.node_count);
  const auto signs = direction(layer, id, Purpose::node_signs, layer.channels);
  return reference::node_signs(signs, static_cast<size_t>(layer.node_count / layer.channels));
}

void ReferenceEstimate::perturb_nodes(const Layer& layer, const QueryId& id, reference::Image& nodes) const {
  const OpRecord& op = model_.op(layer.op);
  const auto signs = node_signs(layer, id);
  const auto values = tensor_of<reference::Vector<int8_t>>(values_of(nodes), {nodes.size()});
  const bool free = layer.estimator == Estimator::pooled_perturbation || options_.nodes == PerturbedNodes::free;
  const auto move = free ? reference::perturb_free : reference::perturb;
  const auto moved = move(values, signs, layer.mu_node, op.clamp_min, op.clamp_max);
  std::copy(moved.begin(), moved.end(), nodes.begin());
}

int32_t ReferenceEstimate::loss_of(const std::vector<float>& logits, uint32_t sample) const {
  int32_t loss = 0;
  const ScoredSample scored = {static_cast<int32_t>(sample), {samples_.labels[sample]}};
  losses_of(trainer_.context(), scored, logits.data(), 1, &loss);
  return loss;
}

int32_t ReferenceEstimate::clean_loss(uint32_t sample) const {
  return loss_of(reference_logits(model_, parameters_, clean_[sample], false), sample);
}

int32_t ReferenceEstimate::query_loss(const LayerRange& perturbed, const QueryId& id) const {
  const std::vector<OpParameters> parameters = perturbed_parameters(perturbed, id);
  Tensors tensors = clean_[id.sample];
  bool from_int8 = false;
  for (int32_t i = 0; i < model_.op_count(); ++i) {
    reference::Image& output = tensors[model_.op(i).output];
    output = run_reference_op(model_, i, parameters, tensors);
    for (int32_t k = perturbed.first; k <= perturbed.last; ++k) {
      if (layer(k).op != i || !perturbs_nodes(layer(k))) continue;
      perturb_nodes(layer(k), id, output);
      from_int8 = from_int8 || i == model_.op_count() - 1;
    }
  }
  return loss_of(reference_logits(model_, parameters, tensors, from_int8), id.sample);
}

Sums ReferenceEstimate::weight_sums(int32_t index, uint32_t sample, const std::vector<double>& differences) const {
  const Layer& one = layer(index);
  const auto queries = differences.size();
  const auto sums_over = [&](Purpose purpose, int32_t count) {
    xt::xtensor<int8_t, 2> signs = xt::zeros<int8_t>({queries, static_cast<size_t>(count)});
    for (uint32_t q = 0; q < queries; ++q) {
      xt::view(signs, q) = direction(one, {q, sample}, purpose, count);
    }
    const auto factors = tensor_of<reference::Vector<double>>(differences, {queries});
    return in_order(reference::weight_gradient(factors, signs));
  };
  Sums sums = {std::vector<double>(static_cast<size_t>(one.weight_count), 0.0),
               std::vector<double>(static_cast<size_t>(one.channels), 0.0)};
  if (trained_weights(options_, one) > 0) sums.weights = sums_over(Purpose::weight_signs, one.weight_count);
  if (options_.train_bias != 0) sums.bias = sums_over(Purpose::bias_signs, one.channels);
  return sums;
}

Sums ReferenceEstimate::through_layer(const Layer& layer, const xt::xtensor<double, 3>& nodes,
                                      const reference::Image& input) const {
  const OpRecord& op = model_.op(layer.op);
  const int32_t input_zero = model_.input_of(op).zero_point;
  const Window window = window_of(op, input);
  const std::vector<double> bias = in_order(reference::bias_gradient(nodes));
  if (op.kind == OpKind::depthwise_conv2d) {
    return {in_order(reference::depthwise_gradient(nodes, input, input_zero, window)), bias};
  }
  return {in_order(reference::conv2d_gradient(nodes, input, input_zero, window)), bias};
}

xt::xtensor<double, 3> ReferenceEstimate::node_gradient(const Layer& layer, uint32_t sample,
                                                        const std::vector<double>& differences) const {
  const OpRecord& op = model_.op(layer.op);
  const reference::Image& nodes = clean_[sample][op.output];
  const size_t queries = differences.size();
  const auto factors = tensor_of<reference::Vector<double>>(differences, {queries});
  const int32_t count = node_columns(layer);
  xt::xtensor<int8_t, 2> signs = xt::zeros<int8_t>({queries, static_cast<size_t>(count)});
  for (uint32_t q = 0; q < queries; ++q) {
    xt::view(signs, q) = direction(layer, {q, sample}, Purpose::node_signs, count);
  }
  if (layer.estimator == Estimator::pooled_perturbation) {
    return reference::pooled_node_gradient(factors, signs, nodes, op.clamp_min, op.clamp_max);
  }
  xt::xtensor<int8_t, 4> by_node = xt::zeros<int8_t>({queries, nodes.shape(0), nodes.shape(1), nodes.shape(2)});
  std::copy(signs.begin(), signs.end(), by_node.begin());
  return reference::node_gradient(factors, by_node, nodes, op.clamp_min, op.clamp_max);
}

Sums ReferenceEstimate::node_sums(int32_t index, uint32_t sample, const std::vector<double>& differences) const {
  const Layer& one = layer(index);
  return through_layer(one, node_gradient(one, sample, differences), clean_[sample][model_.op(one.op).input[0]]);
}

const reference::Image& ReferenceEstimate::clean_nodes(int32_t index, uint32_t sample) const {
  return clean_[sample][model_.op(layer(index).op).output];
}

Sums ReferenceEstimate::head_sums(int32_t index, uint32_t sample) const {
  const Layer& one = layer(index);
  const std::vector<float> logits = reference_logits(model_, parameters_, clean_[sample], false);
  std::vector<int32_t> gradient(logits.size());
  const ScoredSample scored = {static_cast<int32_t>(sample), {samples_.labels[sample]}};
  loss_gradient(trainer_.context(), scored, logits.data(), gradient.data());
  xt::xtensor<double, 3> nodes = xt::zeros<double>({size_t{1}, size_t{1}, logits.size()});
  std::copy(gradient.begin(), gradient.end(), nodes.begin());
  return through_layer(one, nodes, clean_[sample][model_.op(one.op).input[0]]);
}

std::vector<double> ReferenceEstimate::differences(int32_t index, uint32_t sample) const {
  const bool layer_wise = options_.scope == Scope::layer_wise;
  const LayerRange perturbed = layer_wise ? LayerRange{index, index} : LayerRange{0, trainer_.layer_count() - 1};
  std::vector<double> losses;
  for (uint32_t q = 0; q < static_cast<uint32_t>(layer(index).queries); ++q) {
    losses.push_back(query_loss(perturbed, {q, sample}));
  }
  double baseline = clean_loss(sample);
  if (options_.baseline == Baseline::leave_one_out) {
    baseline = 0.0;
    for (const double loss : losses) baseline += loss;
    baseline = halves_away_from_zero(baseline / layer(index).queries);
  }
  for (double& loss : losses) loss -= baseline;
  return losses;
}

Sums ReferenceEstimate::sums(int32_t index) const {
  const Layer& one = layer(index);
  const auto samples = static_cast<uint32_t>(samples_.count());
  const bool shared = options_.sharing == Sharing::batch && one.estimator == Estimator::weight_perturbation;
  Sums total;
  std::vector<double> together(static_cast<size_t>(one.queries), 0.0);
  for (uint32_t n = 0; n < samples; ++n) {
    if (one.estimator == Estimator::closed_form) {
      add(total, head_sums(index, n));
      continue;
    }
    const std::vector<double> own = differences(index, n);
    std::transform(own.begin(), own.end(), together.begin(), together.begin(), std::plus<>());
    if (shared) continue;
    add(total, perturbs_nodes(one) ? node_sums(index, n, own) : weight_sums(index, n, own));
  }
  if (!shared) return total;
  for (double& sum : together) sum = halves_away_from_zero(sum / samples);
  return weight_sums(index, 0, together);
}

}  // namespace pmt::tests
