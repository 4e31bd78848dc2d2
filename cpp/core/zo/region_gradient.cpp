#include "core/zo/region_gradient.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
RegionGradient::RegionGradient(const StepContext& context, const Workspace& workspace, const Layer& layer)
    : context_(context), workspace_(workspace), layer_(layer), regions_(regions_of(context.model(), layer)) {
  const auto columns = static_cast<uint32_t>(node_columns(layer));
  __builtin_memset(workspace.region_values, 0, columns * sizeof(int32_t));
}

void RegionGradient::count(const LayerRows& rows) {
  const OpRecord& op = context_.model().op(layer_.op);
  const int8_t* nodes = rows.output;
  for (int32_t y = 0; y < rows.shape.out.height; ++y, ++y_) {
    for (int32_t x = 0; x < regions_.width; ++x, nodes += layer_.channels) {
      const int32_t region = regions_.at(y_, x);
      int32_t* counts = workspace_.region_values + region * layer_.channels;
      for (int32_t c = 0; c < layer_.channels; ++c) {
        counts[c] += nodes[c] > op.clamp_min && nodes[c] < op.clamp_max ? 1 : 0;
      }
    }
  }
}

void RegionGradient::share(DirectionSums& directions) const {
  const int32_t columns = node_columns(layer_);
  int32_t* shares = workspace_.region_values;
  for (int32_t done = 0; done < columns; done += gradient_chunk) {
    const int32_t chunk = columns - done < gradient_chunk ? columns - done : gradient_chunk;
    directions.next(chunk);
    for (int32_t i = 0; i < chunk; ++i, ++shares) {
      if (*shares == 0) continue;
      const int64_t share = divide_rounded(int64_t{workspace_.sign_sums[i]} * (1 << share_bits), *shares);
      *shares = static_cast<int32_t>(share > INT32_MAX ? INT32_MAX : (share < -INT32_MAX ? -INT32_MAX : share));
    }
  }
}

}  // namespace pmt
