#include "common/session.hpp"

#include "common/checkpoint.hpp"
#include "core/crc32.hpp"
#include "core/loss.hpp"
#include "core/stream_run.hpp"

namespace pmt::firmware {

// `pmt export` counts the arena with these sizes.
static_assert(sizeof(Parameters) == 8 && sizeof(Layer) == 44 && sizeof(Workspace) == 56 && sizeof(LayerStorage) == 8,
              "python/pmt/costs/arena.py must hold the same sizes");

bool Session::fail(const char* what, const Status& status) {
  verify_.failed(what, message(status.code));
  Line line;
  line.text("error: ").text(what).text(": ").text(message(status.code));
  if (status.op >= 0) line.text(" (op ").number(status.op).text(")");
  line.print();
  return false;
}

bool Session::open(const ModelImage& image, const char* card_name, const board::Memory& arena) {
  image_ = image;
  const Status status = model_.open(image.bytes, image.count);
  if (!status.ok()) return fail("model", status);
  const Problem problem = card_.open(card_name, model_);
  if (problem != nullptr) {
    verify_.failed(card_name, problem);
    Line().text("error: ").text(card_name).text(": ").text(problem).print();
    return false;
  }
  verify_.open(model_, card_);
  if (!card_.options(&options_)) return fail("options", {Code::sample_unreadable});
  if (!open_trainer(arena) || !read_memories()) return false;
  print_model();
  return true;
}

// The arena: layer list, settings, parameters of the layers under training, then the trainer's own
// memory.
bool Session::open_trainer(const board::Memory& arena) {
  const int32_t count = card_.header().layers;
  Arena memory(arena.data, arena.bytes);
  auto* layers = memory.take<int32_t>(count);
  auto* settings = memory.take<LayerSettings>(count);
  auto* storage = memory.take<LayerStorage>(count);
  arena_bytes_ = arena.bytes;
  Status status = {Code::arena_too_small};
  size_t taken = memory.used();
  if (memory.fits()) {
    for (int32_t i = 0; i < count; ++i) {
      if (!card_.settings(i, &settings[i])) return fail("settings", {Code::sample_unreadable});
    }
    if (!copy_layers(memory, layers, storage)) return false;
    taken = memory.used();
    if (memory.fits()) {
      TrainerSetup setup = {
          &model_, &portable_kernels(), &options_, layers, count, storage, card_.header().batch, sequential_executor()};
      setup.settings = settings;
      setup.compact = true;
      status = trainer_.open(setup, arena.data + taken, arena.bytes - taken);
      taken += trainer_.bytes_needed();
    }
  }
  arena_needed_ = taken;
  if (status.ok()) return true;
  if (status.code == Code::arena_too_small) {
    Line()
        .text("arena: ")
        .number(static_cast<int64_t>(arena.bytes))
        .text(" bytes, at least ")
        .number(static_cast<int64_t>(taken))
        .text(" needed")
        .print();
  }
  return fail("trainer", status);
}

// What the updates remember of the steps before the card's first.
bool Session::read_memories() {
  const UpdateMemories memories = trainer_.memories();
  const uint32_t bytes = card_.header().memories.bytes;
  if (bytes == 0) return true;
  if (bytes != static_cast<uint64_t>(memories.count) * sizeof(float)) return fail("memories", {Code::update_memory});
  if (!card_.memories(memories.values)) return fail("memories", {Code::sample_unreadable});
  const Status status = trainer_.check_memories();
  return status.ok() || fail("memories", status);
}

bool Session::copy_layers(Arena& memory, int32_t* layers, LayerStorage* storage) {
  const bool moves = options_.train_weights != 0;
  for (int32_t i = 0; i < card_.header().layers; ++i) {
    if (!card_.layer(i, &layers[i])) return fail("layers", {Code::sample_unreadable});
    const bool trainable = layers[i] >= 0 && layers[i] < model_.op_count() && has_weights(model_.op(layers[i]));
    if (!trainable) return fail("layers", {Code::layer_not_trainable, layers[i]});
    const OpRecord& op = model_.op(layers[i]);
    const int32_t weights = weight_count(model_, op);
    const int32_t channels = model_.output_of(op).channels;
    // Weights that are not trained are never written: they stay in flash.
    storage[i].weights = moves ? memory.take<int8_t>(weights) : const_cast<int8_t*>(model_.weights(op));
    storage[i].bias = memory.take<int32_t>(channels);
    if (!memory.fits()) continue;  // go on counting
    if (moves) __builtin_memcpy(storage[i].weights, model_.weights(op), static_cast<size_t>(weights));
    __builtin_memcpy(storage[i].bias, model_.bias(op), 4 * static_cast<size_t>(channels));
  }
  return true;
}

void Session::print_model() const {
  const CardHeader& h = card_.header();
  Line()
      .text("model: ")
      .number(h.ops)
      .text(" ops, ")
      .number(static_cast<int64_t>(image_.count))
      .text(" bytes in flash")
      .print();
  Line()
      .text("train: ")
      .number(h.layers)
      .text(" layers, ")
      .number(h.steps)
      .text(" steps of up to ")
      .number(h.batch)
      .text(" samples, ")
      .number(options_.queries)
      .text(" queries")
      .print();
}

bool Session::check_activations() {
  const CardHeader& h = card_.header();
  const Workspace& workspace = trainer_.workspace(0);
  for (int32_t sample = 0; sample < h.inferences; ++sample) {
    int32_t label = 0;
    int8_t* input = workspace.tensor(trainer_.plan(), Pass::main, model_.header().input_tensor);
    if (!card_.sample(sample, input, &label)) return fail("inference", {Code::sample_unreadable});
    const Plan& plan = trainer_.plan();
    for (int32_t i = 0; i < h.ops; i = plan.segment_end(i) + 1) {
      uint32_t checksums[longest_stream] = {};
      forward_rows(trainer_.network(), plan, workspace, i, [&](int32_t op, const int8_t* rows, int32_t bytes) {
        const auto* first = reinterpret_cast<const uint8_t*>(rows);
        checksums[op - i] = crc32(first, static_cast<size_t>(bytes), checksums[op - i]);
      });
      for (int32_t op = i; op <= plan.segment_end(i); ++op) verify_.activation(sample, op, checksums[op - i]);
    }
  }
  return true;
}

bool Session::read_sample(void* context, int32_t index, int8_t* image, int32_t* label) {
  const StepReader& reader = *static_cast<const StepReader*>(context);
  int32_t sample = 0;
  return reader.card->step_sample(reader.step, index, &sample) && reader.card->sample(sample, image, label);
}

bool Session::step(int32_t index) {
  StepRecord record;
  if (!card_.step(index, &record)) return fail("step", {Code::sample_unreadable});
  StepReader reader = {&card_, index};
  StepResult result = {};
  const Status status =
      trainer_.step(record.step, record.learning_rate, record.samples, {&reader, read_sample}, &result);
  if (!status.ok()) return fail("step", status);
  Line()
      .text("step ")
      .number(index)
      .text(": loss ")
      .ratio(result.loss_sum, int64_t{record.samples} << loss_fraction_bits, 4)
      .text(", accuracy ")
      .ratio(result.correct, record.samples, 3)
      .text(", ")
      .number(result.changed)
      .text(" weights changed")
      .print();
  verify_.result(index, result);
  for (int32_t i = 0; i < trainer_.layer_count(); ++i) verify_.parameters(index, i, trainer_.layer(i));
  return true;
}

bool Session::save(const char* name, const char* name_aside) {
  const CheckpointSource source = {&model_, image_.bytes, &trainer_.layer(0), trainer_.layer_count()};
  if (!write_checkpoint(source, name, name_aside)) {
    verify_.failed(name, "the file cannot be written");
    return false;
  }
  verify_.checkpoint(checkpoint_crc32(source));
  return true;
}

int Session::report() {
  const board::StackUse stack = board::stack_use();
  Line()
      .text("arena: ")
      .number(static_cast<int64_t>(arena_needed_))
      .text(" of ")
      .number(static_cast<int64_t>(arena_bytes_))
      .text(" bytes used")
      .print();
  Line()
      .text("stack: ")
      .number(static_cast<int64_t>(stack.used))
      .text(" of ")
      .number(static_cast<int64_t>(stack.bytes))
      .text(" bytes used at most")
      .print();
  if (stack.used == stack.bytes) verify_.failed("stack", "it is used up: export with a larger one");
  return verify_.report() ? 0 : 1;
}

}  // namespace pmt::firmware
