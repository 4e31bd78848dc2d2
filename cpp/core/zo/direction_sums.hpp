// Sums over a sample's queries of loss difference times direction, for a layer's weights, biases or
// nodes in order. Exact integers: with Hadamard rows, one transform of the differences and one pass
// of the signs give what adding query by query would.
#pragma once

#include "core/zo/direction.hpp"

namespace pmt {

// Rows of a transform for so many directions; a sample's lie in one or two such blocks of rows.
int32_t hadamard_block(int32_t directions);

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
  void transform();
  void next_rademacher(int32_t count);
  void next_hadamard(int32_t count);
  void next_nodes(int32_t count);

  const StepContext& context_;
  const Workspace& workspace_;
  const Layer& layer_;
  const uint32_t sample_;
  const int32_t* differences_;
  const int32_t directions_;

  // Hadamard. transforms_: the sum and the difference of the two blocks' transforms.
  int32_t block_ = 0;
  uint32_t block_of_rows_[2] = {0, 0};
  int32_t* transforms_[2] = {nullptr, nullptr};
  SignStream signs_;
  uint32_t column_ = 0;

  int32_t position_ = 0;
};

}  // namespace pmt
