// A layer under training.
#pragma once

#include "core/net/network.hpp"
#include "core/zo/options.hpp"

namespace pmt {

enum class Estimator : uint32_t {
  weight_perturbation = 0,
  node_perturbation = 1,
  closed_form = 2,  // a linear head: the loss's gradient by the logits is known exactly
  pooled_perturbation = 3,
};

// A layer's output plane in rectangles of nearly equal size. Pooled node perturbation moves all nodes of a
// channel in a region together.
struct Regions {
  int32_t height, width;  // of the plane
  int32_t rows, columns;

  int32_t count() const { return rows * columns; }
  int32_t at(int32_t y, int32_t x) const { return y * rows / height * columns + x * columns / width; }
  // First position of the row or column of regions; one after the last ends the plane.
  int32_t first_row(int32_t row) const { return start(row, rows, height); }
  int32_t first_column(int32_t column) const { return start(column, columns, width); }
  // First x right of the region in which an x lies.
  int32_t end_of(int32_t x) const { return start(x * columns / width + 1, columns, width); }
  int64_t positions(int32_t region) const {
    return int64_t{length(region / columns, rows, height)} * length(region % columns, columns, width);
  }

 private:
  // First position of a part of a side.
  static int32_t start(int32_t part, int32_t parts, int32_t side) { return (part * side + parts - 1) / parts; }
  static int32_t length(int32_t part, int32_t parts, int32_t side) {
    return start(part + 1, parts, side) - start(part, parts, side);
  }
};

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
  int16_t mu_node;
  uint8_t region_rows, region_columns;  // pooled node perturbation
};
template <>
inline constexpr size_t size_on_device<Layer> = 40;

// Whether queries move a layer's output, and not its parameters.
inline bool perturbs_nodes(const Layer& layer) {
  return layer.estimator == Estimator::node_perturbation || layer.estimator == Estimator::pooled_perturbation;
}

// Values in which a query moves a layer's nodes: one a node, or pooled, one a channel and region.
inline int32_t node_columns(const Layer& layer) {
  return layer.estimator == Estimator::pooled_perturbation ? layer.channels * layer.region_rows * layer.region_columns
                                                           : layer.node_count;
}

Regions regions_of(const Model& model, const Layer& layer);

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
// positions of its channel, which nodes would have to find out one by one.
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

// Size of a bias perturbation: mu output steps, in bias steps (s_x * s_w); 0 for a dead channel.
int32_t bias_mu(const Model& model, const OpRecord& op, int32_t channel, int32_t mu);

}  // namespace pmt
