#include "core/train/allocation.hpp"

#include "core/base/arithmetic.hpp"
#include "core/zo/options.hpp"

namespace pmt {
namespace {

// The error that two more queries take off, by their multiply-accumulates (up to a factor).
float gain(const QueryDemand& layer) {
  if (layer.macs == 0) return 0.0f;
  const float pairs = static_cast<float>(layer.queries) * static_cast<float>(layer.queries + allocated_at_once);
  const float value = layer.error / (pairs * to_float(layer.macs));
  return is_finite(value) ? value : 0.0f;
}

// The layer whose next queries gain most among those that `left` pays for, null if there is none.
QueryDemand* best_layer(QueryDemand* layers, int32_t count, int64_t left) {
  QueryDemand* best = nullptr;
  float most = 0.0f;
  for (int32_t i = 0; i < count; ++i) {
    QueryDemand& layer = layers[i];
    const bool room = layer.queries + allocated_at_once <= most_queries && allocated_at_once * layer.macs <= left;
    if (!room || gain(layer) <= most) continue;
    most = gain(layer);
    best = &layer;
  }
  return best;
}

}  // namespace

void allocate_queries(QueryDemand* layers, int32_t count, int32_t uniform) {
  int64_t left = 0;
  bool known = false;
  for (int32_t i = 0; i < count; ++i) {
    layers[i].queries = uniform;
    left += (uniform - least_allocated) * layers[i].macs;
    known = known || gain(layers[i]) > 0.0f;
  }
  if (uniform < least_allocated || !known) return;
  for (int32_t i = 0; i < count; ++i) {
    if (layers[i].macs > 0) layers[i].queries = least_allocated;
  }
  while (QueryDemand* layer = best_layer(layers, count, left)) {
    layer->queries += allocated_at_once;
    left -= allocated_at_once * layer->macs;
  }
}

}  // namespace pmt
