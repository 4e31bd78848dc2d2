#include "align/covariance_alignment.hpp"

#include "align/mapped_weights.hpp"
#include "align/transport.hpp"
#include "core/base/arena.hpp"
#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

struct Memory {
  float* reference;
  float* found;
  float* map;
  float* transport;
  float* weights;  // of one output channel, mapped
};

Memory take_memory(Arena& arena, const WindowGroups& groups) {
  const int64_t window = groups.window();
  Memory memory = {};
  memory.reference = arena.take<float>(window * window);
  memory.found = arena.take<float>(window * window);
  memory.map = arena.take<float>(window * window);
  memory.transport = arena.take<float>(transport_floats(window));
  memory.weights = arena.take<float>(window);
  return memory;
}

// False where there is nothing to divide by.
bool normalized_covariance(const WindowGroups& groups, const float* values, float* matrix) {
  window_covariance(groups, values, matrix);
  const int32_t window = groups.window();
  float sum = 0.0f;
  for (int32_t i = 0; i < window; ++i) sum += matrix[i * (window + 1)];
  const float mean = sum / to_float(window);
  if (!(mean > 0.0f) || !is_finite(mean)) return false;
  for (int32_t i = 0; i < window * window; ++i) matrix[i] /= mean;
  return true;
}

void map_channel(const Model& model, const OpRecord& op, int32_t channel, const WindowGroups& groups,
                 const Memory& memory, const float* means, const AlignedLayer& layer) {
  const ChannelWeights at = channel_weights(model, op, channel);
  const int32_t window = groups.window();
  for (int32_t i = 0; i < window; ++i) memory.weights[i] = 0.0f;
  for (int32_t k = 0; k < window; ++k) {
    const float weight = to_float(layer.weights[at.first + k * at.stride]);
    for (int32_t i = 0; i < window; ++i) memory.weights[i] += weight * memory.map[k * window + i];
  }
  write_mapped_channel(model, op, channel, {memory.weights, means, groups.channels}, layer);
}

}  // namespace

size_t covariance_alignment_bytes(const WindowGroups& groups) {
  Arena measure;
  take_memory(measure, groups);
  return measure.used();
}

void align_covariances(const Model& model, int32_t op, int32_t group, const WindowStatistics& reference,
                       const WindowStatistics& found, const AlignedLayer& layer, void* scratch) {
  const OpRecord& record = model.op(op);
  const WindowGroups groups = window_groups(model, op);
  Arena arena(scratch, covariance_alignment_bytes(groups));
  const Memory memory = take_memory(arena, groups);
  const int64_t at = int64_t{group} * groups.values();
  if (!normalized_covariance(groups, reference.values + at, memory.reference)) return;
  if (!normalized_covariance(groups, found.values + at, memory.found)) return;
  transport_map(groups.window(), memory.reference, memory.found, memory.map, memory.transport);
  const int32_t outputs = model.output_of(record).channels / groups.count;
  for (int32_t c = group * outputs; c < (group + 1) * outputs; ++c) {
    if (channel_is_dead(layer.weight_scales[c])) continue;
    map_channel(model, record, c, groups, memory, found.means + group * groups.channels, layer);
  }
}

}  // namespace pmt
