#include "core/base/arithmetic.hpp"
#include "core/net/network.hpp"

namespace pmt {
namespace {

// scales[c] for the layer's channels, 0 after them.
template <typename Scale>
void fill(float* scales, int32_t channels, int32_t padded, Scale scale) {
  for (int32_t c = 0; c < padded; ++c) scales[c] = c < channels ? scale(c) : 0.0f;
}

PackedLayer take_layer(Arena& arena, const Network& network, int32_t index) {
  const Model& model = *network.model;
  const Kernels& kernels = *network.kernels;
  const OpRecord& op = model.op(index);
  const auto alignment = static_cast<size_t>(kernels.alignment);
  const int32_t padded = round_up(model.output_of(op).channels, kernels.channel_multiple);
  PackedLayer packed = {};
  packed.weights = arena.take<uint8_t>(MemoryPart::weights, kernels.packed_bytes(op_shape(model, op)), alignment);
  packed.bias = arena.take<int32_t>(MemoryPart::biases, padded, alignment);
  packed.scales = arena.take<float>(padded, alignment);
  if (index == model.op_count() - 1 && has_linear_head(model)) {
    packed.logit_scales = arena.take<float>(padded, alignment);
  }
  return packed;
}

}  // namespace

bool packs(const Kernels& kernels) { return kernels.channel_multiple > 1; }

void pack_network(Arena& arena, Network& network) {
  const Model& model = *network.model;
  network.packed = nullptr;
  if (!packs(*network.kernels)) return;
  auto* packed = arena.take<PackedLayer>(MemoryPart::lists, model.op_count());
  for (int32_t i = 0; i < model.op_count(); ++i) {
    const PackedLayer layer = has_weights(model.op(i)) ? take_layer(arena, network, i) : PackedLayer{};
    if (packed != nullptr) packed[i] = layer;
  }
  network.packed = packed;
  if (packed == nullptr || !arena.fits()) return;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (packed[i].scales == nullptr || packed[i].bias == nullptr) continue;
    rescale_layer(network, i);
    repack_layer(network, i);
  }
}

void rescale_layer(const Network& network, int32_t index) {
  if (network.packed == nullptr) return;
  const Model& model = *network.model;
  const OpRecord& op = model.op(index);
  const PackedLayer& packed = network.packed[index];
  const float input_scale = model.input_of(op).scale, output_scale = model.output_of(op).scale;
  const float* weight_scales = model.weight_scales(op);
  const int32_t channels = model.output_of(op).channels;
  const int32_t padded = round_up(channels, network.kernels->channel_multiple);
  fill(packed.scales, channels, padded, [&](int32_t c) { return input_scale * weight_scales[c] / output_scale; });
  if (packed.logit_scales != nullptr) {
    fill(packed.logit_scales, channels, padded, [&](int32_t c) { return input_scale * weight_scales[c]; });
  }
}

void repack_layer(const Network& network, int32_t index) {
  if (network.packed == nullptr) return;
  const Model& model = *network.model;
  const OpRecord& op = model.op(index);
  const Parameters& parameters = network.parameters[index];
  const PackedLayer& packed = network.packed[index];
  network.kernels->pack(
      {op_shape(model, op), model.input_of(op).zero_point, parameters.weights, nullptr, 0, packed.weights});
  const int32_t channels = model.output_of(op).channels;
  const int32_t padded = round_up(channels, network.kernels->channel_multiple);
  for (int32_t c = 0; c < padded; ++c) packed.bias[c] = c < channels ? parameters.bias[c] : 0;
}

}  // namespace pmt
