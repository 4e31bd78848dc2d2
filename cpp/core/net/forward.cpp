#include "core/net/forward.hpp"

#include "core/net/stream_run.hpp"

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

namespace {

OpImages main_images(const Network& network, const Plan& plan, const Activations& memory, int32_t images,
                     int32_t index) {
  const OpRecord& op = network.model->op(index);
  OpImages result = {images, {nullptr, nullptr}, {0, 0}, nullptr, 0, op_shape(*network.model, op)};
  for (int i = 0; i < 2; ++i) {
    if (op.input[i] == no_tensor) continue;
    result.input[i] = memory.tensor(plan, Pass::main, op.input[i], images);
    result.input_stride[i] = plan.size(static_cast<int32_t>(op.input[i]));
  }
  result.output = memory.tensor(plan, Pass::main, op.output, images);
  result.output_stride = plan.size(static_cast<int32_t>(op.output));
  return result;
}

}  // namespace

void forward(const Network& network, const Plan& plan, const Activations& memory, int32_t images, int32_t begin,
             int32_t end) {
  for (int32_t i = begin; i < end; i = plan.segment_end(i) + 1) {
    if (plan.streams(i)) {
      run_stream(*network.model, plan, memory, {Pass::main, 0}, i, plan.segment_end(i),
                 [&](int32_t op, const OpImages& rows) {
                   run_op(network, op, rows, memory.scratch_of(plan, Pass::main, op));
                 });
    } else {
      run_op(network, i, main_images(network, plan, memory, images, i), memory.scratch_of(plan, Pass::main, i));
    }
  }
}

void dequantize_logits(const Model& model, const OpImages& images, float* logits) {
  const TensorRecord& out = model.output();
  for (int32_t i = 0; i < images.images; ++i) {
    const int8_t* output = images.output + i * images.output_stride;
    for (int32_t c = 0; c < model.classes(); ++c) {
      *logits++ = static_cast<float>(output[c] - out.zero_point) * out.scale;
    }
  }
}

void head_logits(const Network& network, const Activations& memory, const OpImages& images, bool int8_logits,
                 void* scratch) {
  const Model& model = *network.model;
  const int32_t last = model.op_count() - 1;
  if (!int8_logits && has_linear_head(model)) {
    run_logits(network, images, layer_input(network, last), 0, model.classes(), scratch, memory.logits);
    return;
  }
  run_op(network, last, images, scratch);
  dequantize_logits(model, images, memory.logits);
}

void main_logits(const Network& network, const Plan& plan, const Activations& memory, int32_t images,
                 bool int8_logits) {
  const int32_t last = network.model->op_count() - 1;
  head_logits(network, memory, main_images(network, plan, memory, images, last), int8_logits,
              memory.scratch_of(plan, Pass::main, last));
}

}  // namespace pmt
