#include "host/inference.hpp"

#include <algorithm>
#include <cstring>

#include "core/input/input_stage.hpp"
#include "core/net/forward.hpp"
#include "host/image_batches.hpp"
#include "host/team.hpp"

namespace pmt::host {
namespace {

constexpr int32_t frames_at_once = 8;

AlignedMemory memory_for(const ImageBatches& batches, int32_t workers) {
  return measured_memory([&](Arena& arena) { batches.take(arena); }, workers);
}

// Images first .. first + count - 1, run up to before an op.
struct Tile {
  Activations memory;
  int32_t first, count;
};

// Runs tiles of images up to before op `end`, on several threads, and visits each.
template <typename Visit>
void run_tiles(const HostModel& model, const int8_t* images, int32_t count, int32_t end, int32_t threads,
               const std::function<bool()>& should_stop, const Visit& visit) {
  if (count == 0) return;
  const Access::Shared use(model.access());
  const ImageBatches batches(model.network(), model.plan(), count, thread_count(threads), end);
  const int32_t tiles = (count + batches.images() - 1) / batches.images();
  Team team(std::min(thread_count(threads), tiles), should_stop);
  const AlignedMemory all_memory = memory_for(batches, team.threads());
  const int64_t elements = element_count(model.model().input());
  const auto run_tile = [&](int32_t index, int32_t worker) {
    Arena arena = all_memory.arena(worker);
    const ImageBatches::Memory memory = batches.take(arena);
    const int32_t first = index * batches.images();
    const Tile tile = {memory.many, first, std::min(batches.images(), count - first)};
    batches.run(memory, images + first * elements, tile.count, end);
    visit(tile);
  };
  if (!team.executor().for_each(tiles, true, run_tile)) check({Code::cancelled});
}

}  // namespace

void batch_logits(const HostModel& model, const int8_t* images, int32_t count, bool int8_logits, int32_t threads,
                  const std::function<bool()>& should_stop, float* logits) {
  const int32_t classes = model.model().classes();
  const auto keep_logits = [&](const Tile& tile) {
    main_logits(model.network(), model.plan(), tile.memory, tile.count, int8_logits);
    std::copy_n(tile.memory.logits, tile.count * classes, logits + static_cast<int64_t>(tile.first) * classes);
  };
  run_tiles(model, images, count, model.model().op_count() - 1, threads, should_stop, keep_logits);
}

void batch_inputs(const HostModel& model, const int8_t* images, int32_t count, int32_t op, int32_t threads,
                  const std::function<bool()>& should_stop, int8_t* inputs) {
  const uint32_t tensor = model.model().op(op).input[0];
  const int32_t elements = element_count(model.model().input_of(model.model().op(op)));
  const auto keep_inputs = [&](const Tile& tile) {
    const int8_t* from = tile.memory.tensor(model.plan(), Pass::main, tensor, tile.count);
    for (int32_t i = 0; i < tile.count; ++i) {
      std::memcpy(inputs + static_cast<int64_t>(tile.first + i) * elements,
                  from + i * model.plan().size(static_cast<int32_t>(tensor)), static_cast<size_t>(elements));
    }
  };
  run_tiles(model, images, count, op, threads, should_stop, keep_inputs);
}

std::vector<std::vector<int8_t>> activations(const HostModel& host, const int8_t* image) {
  const Access::Shared use(host.access());
  const Model& model = host.model();
  const Plan& plan = host.plan();
  const ImageBatches batches(host.network(), plan, 1, 1, 0);
  const AlignedMemory all_memory = memory_for(batches, 1);
  Arena arena = all_memory.arena();
  const Activations memory = batches.take(arena).many;
  std::vector<std::vector<int8_t>> tensors(static_cast<size_t>(model.tensor_count()));
  const auto keep = [&](uint32_t tensor) {
    const int8_t* data = memory.tensor(plan, Pass::main, tensor);
    tensors[tensor].assign(data, data + element_count(model.tensor(static_cast<int32_t>(tensor))));
  };
  const uint32_t input = model.header().input_tensor;
  std::memcpy(memory.tensor(plan, Pass::main, input), image, static_cast<size_t>(element_count(model.input())));
  keep(input);
  for (int32_t i = 0; i < model.op_count(); ++i) {
    forward(host.network(), plan, memory, 1, i, i + 1);
    keep(model.op(i).output);
  }
  return tensors;
}

void batch_input_stage(const HostModel& model, const uint8_t* frames, int32_t count, int32_t threads,
                       const std::function<bool()>& should_stop, int8_t* inputs) {
  const Access::Shared use(model.access());
  const Model& view = model.model();
  const int32_t tasks = (count + frames_at_once - 1) / frames_at_once;
  Team team(std::clamp(thread_count(threads), 1, std::max(tasks, 1)), should_stop);
  const AlignedMemory memory(static_cast<size_t>(input_stage_bytes(view) + frame_bytes(view)), team.threads());
  const auto bytes = static_cast<size_t>(frame_bytes(view));
  const auto elements = static_cast<size_t>(element_count(view.input()));
  const auto run_frames = [&](int32_t task, int32_t worker) {
    uint8_t* const scratch = memory.data(worker);
    uint8_t* const copy = scratch + input_stage_bytes(view);
    const int32_t end = std::min((task + 1) * frames_at_once, count);
    for (int32_t i = task * frames_at_once; i < end; ++i) {
      std::memcpy(copy, frames + static_cast<size_t>(i) * bytes, bytes);
      run_input_stage(view, copy, scratch, inputs + static_cast<size_t>(i) * elements);
    }
  };
  if (!team.executor().for_each(tasks, true, run_frames)) check({Code::cancelled});
}

}  // namespace pmt::host
