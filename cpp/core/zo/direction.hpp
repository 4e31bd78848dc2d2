// The direction in which a query moves a layer: random signs, one for each of its weights, biases or nodes.
// Regenerated whenever it is needed, never stored; and the gradient's sums over such directions.
#pragma once

#include "core/zo/query.hpp"

namespace pmt {

// Directions of a layer for each sample.
struct Directions {
  int32_t first, count;
  bool contain(int32_t direction) const { return direction >= first && direction < first + count; }
};

// Those that move what the purpose names: all, one a query, or one for two where they are antithetic. Where biases
// are perturbed apart, the first half, rounded up, moves weights and the others biases.
Directions directions_of(const TrainerOptions& options, const Layer& layer, Purpose purpose);

class Direction {
 public:
  Direction(const StepContext& context, const Layer& layer, const QueryId& id, Purpose purpose);

  // Writes the next `count` values; zeros where the query moves something else.
  void next(const Kernels& kernels, int32_t count, int8_t* values);

 private:
  SignStream signs_;
  bool backwards_;
  bool moves_;
};

// The direction of a query in a layer's nodes, in order: one value a node or, pooled, one for all nodes of a channel.
class NodeSigns {
 public:
  NodeSigns(const StepContext& context, const Workspace& workspace, const Layer& layer, const QueryId& id);

  // Writes the next `count` values.
  void next(const Kernels& kernels, int32_t count, int8_t* values);

 private:
  Direction direction_;
  const int32_t channels_;
  const int8_t* signs_ = nullptr;  // of every channel; none unless pooled
  int32_t channel_ = 0;
};

// Sums over a sample's queries of loss difference times direction, for a layer's weights, biases or
// nodes in order; exact integers.
class DirectionSums {
 public:
  DirectionSums(const StepContext& context, const Workspace& workspace, const Layer& layer, uint32_t sample,
                const int32_t* differences);

  // Goes to the first weight, bias or node.
  void open(Purpose purpose);

  // Writes the next `count` sums to workspace.sign_sums.
  void next(int32_t count);

  // Goes on as if `count` sums had been read.
  void skip(int32_t count);

 private:
  int32_t difference(int32_t direction) const;

  const StepContext& context_;
  const Workspace& workspace_;
  const Layer& layer_;
  const uint32_t sample_;
  const int32_t* differences_;
  Directions directions_ = {0, 0};
};

}  // namespace pmt
