#include "core/net/activations.hpp"

namespace pmt {

int32_t kernel_scratch_bytes(const Network& network) {
  int32_t most = 0;
  for (int32_t i = 0; i < network.model->op_count(); ++i) {
    const int32_t bytes = op_scratch_bytes(network, network.model->op(i));
    if (bytes > most) most = bytes;
  }
  return most;
}

Activations take_activations(Arena& arena, const Network& network, const Plan& plan, int32_t images) {
  const auto alignment = static_cast<size_t>(network.kernels->alignment);
  Activations result = {};
  result.activations =
      arena.take<uint8_t>(MemoryPart::activations, static_cast<int64_t>(plan.bytes()) * images, alignment);
  result.queries = result.activations;
  result.scratch = arena.take<uint8_t>(kernel_scratch_bytes(network), alignment);
  result.logits = arena.take<float>(static_cast<int64_t>(network.model->classes()) * images);
  return result;
}

}  // namespace pmt
