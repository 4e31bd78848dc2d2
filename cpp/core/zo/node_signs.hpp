// The direction of a query in a layer's nodes, in order: one value a node or, pooled, one for all nodes of a
// channel in a region.
#pragma once

#include "core/zo/direction.hpp"

namespace pmt {

class NodeSigns {
 public:
  NodeSigns(const StepContext& context, const Workspace& workspace, const Layer& layer, const QueryId& id);

  // Writes the next `count` values.
  void next(const Kernels& kernels, int32_t count, int8_t* values);

 private:
  int32_t next_of_region(int32_t count, int8_t* values);

  Direction direction_;
  const int32_t channels_;
  const Regions regions_;
  const int8_t* signs_ = nullptr;  // every region's, all channels of each; none unless pooled
  int32_t y_ = 0, x_ = 0, channel_ = 0;
};

}  // namespace pmt
