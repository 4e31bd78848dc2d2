// Counts the instructions of every op of a forward, and of the parts of a training step.
#include "common/board.hpp"
#include "common/log.hpp"
#include "common/semihosting.hpp"
#include "core/base/crc32.hpp"
#include "core/train/device_setup.hpp"
#include "core/train/trainer.hpp"
#include "instructions/counting_kernels.hpp"
#include "instructions/task.hpp"

extern "C" uint8_t arena_begin[], arena_end[];  // from link.ld

namespace pmt::instructions {
namespace {

using firmware::Line;

constexpr float no_learning = 0.0f;

bool refuse(const char* what) {
  Line().text("error: ").text(what).print();
  return false;
}

// Any input will do: no kernel's work depends on values but for the padding.
void fill_input(const Model& model, int8_t* input) {
  const int32_t count = element_count(model.tensor(model.header().input_tensor));
  uint32_t state = 1;
  for (int32_t i = 0; i < count; ++i) {
    state = xorshift32(state);
    input[i] = static_cast<int8_t>(state >> 8);
  }
}

// "op INDEX KERNELS INSTRUCTIONS CRC": the output's CRC-32 shows that all kernels compute the same.
bool count_forward(const Model& model, const Kernels& kernels) {
  Arena arena(arena_begin, static_cast<size_t>(arena_end - arena_begin));
  auto* parameters = arena.take<Parameters>(MemoryPart::lists, model.op_count());
  auto* table = arena.take<int32_t>(MemoryPart::lists, Plan::table_size(model));
  if (!arena.fits()) return refuse("the model does not fit the RAM");
  const Network network = {&model, &kernels, parameters, nullptr};
  bind_parameters(model, parameters);
  Plan plan;
  plan.make(model, nullptr, 0, QueryMemory::shared, table);
  const Activations memory = take_activations(arena, network, plan, 1);
  if (!arena.fits()) return refuse("the activations do not fit the RAM");
  fill_input(model, memory.tensor(plan, Pass::main, model.header().input_tensor));
  Counter counter;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    counter.lap();
    forward(network, plan, memory, 1, i, i + 1);
    const int64_t instructions = counter.lap();
    const auto* output = reinterpret_cast<const uint8_t*>(memory.tensor(plan, Pass::main, model.op(i).output));
    const auto bytes = static_cast<size_t>(element_count(model.output_of(model.op(i))));
    Line line;
    line.text("op ").number(i).text(" ").text(kernels.name).text(" ").number(instructions).text(" ");
    line.hex(crc32(output, bytes)).print();
  }
  return true;
}

bool read_sample(void* context, int32_t, int8_t* image, int32_t* label) {
  fill_input(*static_cast<const Model*>(context), image);
  *label = 0;
  return true;
}

bool copy_layers(const Model& model, Arena& arena, LayerStorage* storage) {
  for (int32_t i = 0; i < layer_count; ++i) {
    const OpRecord& op = model.op(layers[i]);
    storage[i] = take_parameters(arena, model, op, true);
    if (!arena.fits()) return false;
    copy_parameters(model, op, storage[i]);
  }
  return true;
}

int64_t total(const Counts& counts) {
  int64_t sum = 0;
  for (const int64_t instructions : counts.instructions) sum += instructions;
  return sum;
}

// "pass KERNELS INSTRUCTIONS": a forward as a step runs it, its first layers in line buffers.
void count_pass(const Model& model, const Kernels& kernels, const Trainer& trainer) {
  const Workspace& workspace = trainer.workspace(0);
  fill_input(model, workspace.tensor(trainer.plan(), Pass::main, model.header().input_tensor));
  take_counts();
  forward(trainer.network(), trainer.plan(), workspace, 1, 0, model.op_count() - 1);
  main_logits(trainer.network(), trainer.plan(), workspace, 1, false);
  const int64_t instructions = total(take_counts());
  Line().text("pass ").text(kernels.name).text(" ").number(instructions).print();
}

// "step PART KERNELS INSTRUCTIONS CALLS", of a step as the firmware runs it.
bool count_step(const Model& model, const Kernels& kernels) {
  Arena arena(arena_begin, static_cast<size_t>(arena_end - arena_begin));
  LayerStorage* storage = take_storage(arena, layer_count);
  if (!arena.fits() || !copy_layers(model, arena, storage)) return refuse("the layers do not fit the RAM");
  TrainerOptions chosen;
  __builtin_memcpy(&chosen, options, sizeof chosen);
  TrainerSetup setup = {&model, &counted(kernels), &chosen, layers, layer_count, storage, 1, sequential_executor()};
  setup.compact = true;
  setup.streams = streams;
  setup.stream_count = stream_count;
  Trainer trainer;
  const size_t used = (arena.used() + image_alignment - 1) / image_alignment * image_alignment;
  const auto left = static_cast<size_t>(arena_end - arena_begin) - used;
  const Status status = trainer.open(setup, arena_begin + used, left);
  if (!status.ok()) return refuse(message(status.code));
  count_pass(model, kernels, trainer);
  StepResult result = {};
  take_counts();
  const Status done = trainer.step(0, no_learning, 1, {const_cast<Model*>(&model), read_sample}, &result);
  const Counts counts = take_counts();
  if (!done.ok()) return refuse(message(done.code));
  const char* const names[parts] = {"layers",       "other_ops",      "signs", "perturbation",
                                    "accumulation", "outer_products", "rest"};
  for (int32_t i = 0; i < parts; ++i) {
    Line line;
    line.text("step ").text(names[i]).text(" ").text(kernels.name).text(" ");
    line.number(counts.instructions[i]).text(" ").number(counts.calls[i]).print();
  }
  return true;
}

bool count_all(const Model& model, const Kernels& kernels) {
  return count_forward(model, kernels) && (layer_count == 0 || count_step(model, kernels));
}

bool run() {
  static Model model;
  const Status status = model.open(model_image, model_bytes);
  if (!status.ok()) return refuse(message(status.code));
  if (count_device && !count_all(model, device_kernels())) return false;
  return !count_portable || count_all(model, portable_kernels());
}

}  // namespace
}  // namespace pmt::instructions

// The functions of a board that common/ needs: the console and the end, by semihosting.
void pmt::board::print(const char* text) { semihosting::print(text); }

void pmt::board::exit(int status) { semihosting::exit(status); }

int main() { return pmt::instructions::run() ? 0 : 1; }
