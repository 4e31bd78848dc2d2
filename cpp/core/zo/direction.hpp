// The direction in which a query moves a layer: -1, 0 or +1 for each of its weights, biases or
// nodes. Regenerated whenever it is needed, never stored.
#pragma once

#include "core/zo/query.hpp"
#include "core/zo/walsh_hadamard.hpp"

namespace pmt {

// Directions of a layer for each sample: one a query, or one for two where they are antithetic.
int32_t direction_count(const StepContext& context, const Layer& layer);

// Coordinates that a direction has: weights and biases, or nodes, that a query moves.
uint32_t column_count(const StepContext& context, const Layer& layer);

// The random signs of a direction: with Hadamard rows, of all directions of a sample or of the batch.
SignStream direction_signs(const StepContext& context, const Layer& layer, uint32_t direction, uint32_t sample,
                           Purpose purpose);

// Rows that a sample's directions take. Directions of a whole matrix are orthogonal where its order
// divides the layer's dimension, and complete (every coordinate is measured apart from all others)
// where it is not below the dimension.
struct HadamardRows {
  uint32_t order;  // the smallest power of two that is not below the number of columns
  uint32_t first;
  // Columns start at a random one (XORed, which only flips whole rows): the first column's entries
  // are all +1, and its share of the gradient is what a baseline takes away or leaves in.
  uint32_t shift;

  uint32_t row(uint32_t direction) const { return (first + direction) & (order - 1); }
  bool negative(uint32_t direction) const { return parity(row(direction) & shift) != 0; }
};
HadamardRows hadamard_rows(const StepContext& context, const Layer& layer, uint32_t sample);

// Column of the first weight, bias or node. Biases come after the weights; model-wise, layers one
// after another.
uint32_t first_column(const StepContext& context, const Layer& layer, Purpose purpose);

// The element that a coordinate query moves, and which way: up, or down where that would leave the range.
struct Coordinate {
  Purpose purpose;
  int32_t index;
  int8_t sign;
};
Coordinate coordinate_of(const StepContext& context, const Workspace& workspace, const Layer& layer, int32_t query);

class Direction {
 public:
  Direction(const StepContext& context, const Workspace& workspace, const Layer& layer, const QueryId& id,
            Purpose purpose);

  // Writes the next `count` values.
  void next(const Kernels& kernels, int32_t count, int8_t* values);

 private:
  void next_coordinate(int32_t count, int8_t* values) const;

  Directions directions_;
  SignStream signs_;
  WalshRow row_;
  bool flips_;             // row_ has an effect
  Coordinate coordinate_;  // its index is -1 where another purpose has it
  const int8_t* mask_;
  int32_t position_ = 0;
};

}  // namespace pmt
