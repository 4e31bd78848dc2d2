#include "common/session.hpp"

#include "common/executor.hpp"
#include "common/high_water.hpp"
#include "common/training_log.hpp"
#include "core/base/crc32.hpp"
#include "core/net/stream_run.hpp"
#include "core/train/device_setup.hpp"

namespace pmt::firmware {

bool Session::fail(const char* what, const char* why, int32_t op) {
  board::set_led(false);
  Line line;
  line.text("error: ");
  if (storage_.fault().why != nullptr) {  // the cause of every later failure
    verify_.failed(storage_.fault());
    line.text("card: ");
    storage_.fault().describe(line);
  } else {
    verify_.failed(what, why);
    line.text(what).text(": ").text(why);
    if (op >= 0) line.text(" (op ").number(op).text(")");
  }
  line.print();
  return false;
}

bool Session::fail(const char* what, const Status& status) { return fail(what, message(status.code), status.op); }

bool Session::open(const ModelImage& image, const board::Memory& arena) {
  image_ = image;
  const Status status = model_.open(image.bytes, image.count);
  if (!status.ok()) return fail("model", status);
  if (!open_card() || !open_trainer(arena) || !read_optimizer_state()) return false;
  log_model(card_.header(), image_.count, options_.queries);
  return true;
}

bool Session::open_card() {
  const Problem problem = card_.open(&storage_, model_);
  if (problem != nullptr) return fail("card", problem);
  verify_.open(model_, card_);
  return card_.options(&options_) || fail("options", {Code::sample_unreadable});
}

// The arena: layer list, settings, the ops that stream, parameters of the layers under training, then the
// trainer's own memory.
bool Session::open_trainer(const board::Memory& arena) {
  Arena memory(arena.data, arena.bytes);
  TrainerSetup setup = {};
  if (!read_setup(memory, &setup)) return false;
  arena_ = arena;
  const size_t taken = memory.used();
  arena_needed_ = taken;
  Status status = {Code::arena_too_small};
  if (memory.fits()) {
    status = trainer_.open(setup, arena.data + taken, arena.bytes - taken);
    arena_needed_ += trainer_.bytes_needed();
  }
  if (status.ok()) return true;
  if (status.code == Code::arena_too_small) {
    Line()
        .text("arena: ")
        .number(static_cast<int64_t>(arena.bytes))
        .text(" bytes, at least ")
        .number(static_cast<int64_t>(arena_needed_))
        .text(" needed")
        .print();
  }
  return fail("trainer", status);
}

// Reads the setup of the training from the card. Where the memory does not suffice, nothing is read into it.
bool Session::read_setup(Arena& memory, TrainerSetup* setup) {
  const int32_t count = card_.header().layers;
  const auto [layers, settings, streams, storage] = take_lists(memory, count, card_.stream_count());
  if (!memory.fits()) return true;
  for (int32_t i = 0; i < count; ++i) {
    if (!card_.settings(i, &settings[i])) return fail("settings", {Code::sample_unreadable});
  }
  for (int32_t i = 0; i < card_.stream_count(); ++i) {
    if (!card_.stream(i, &streams[i])) return fail("streams", {Code::sample_unreadable});
  }
  *setup = {&model_, &device_kernels(), &options_, layers, count, storage, card_.header().batch, watched_executor()};
  setup->settings = settings;
  setup->compact = true;
  setup->streams = streams;
  setup->stream_count = card_.stream_count();
  return copy_layers(memory, layers, storage);
}

// The optimizer state after the steps before the card's first.
bool Session::read_optimizer_state() {
  const OptimizerState state = trainer_.optimizer_state();
  const uint32_t bytes = card_.header().optimizer_state.bytes;
  if (state.count != card_.header().optimizer_values) return fail("memories", {Code::optimizer_state});
  if (bytes == 0) return true;
  if (bytes != static_cast<uint64_t>(state.count) * sizeof(float)) return fail("memories", {Code::optimizer_state});
  if (!card_.optimizer_state(state.values)) return fail("memories", {Code::sample_unreadable});
  const Status status = state.check();
  return status.ok() || fail("memories", status);
}

bool Session::copy_layers(Arena& memory, int32_t* layers, LayerStorage* storage) {
  const bool moves = options_.train_weights != 0;
  for (int32_t i = 0; i < card_.header().layers; ++i) {
    if (!card_.layer(i, &layers[i])) return fail("layers", {Code::sample_unreadable});
    const bool trainable = layers[i] >= 0 && layers[i] < model_.op_count() && has_weights(model_.op(layers[i]));
    if (!trainable) return fail("layers", {Code::layer_not_trainable, layers[i]});
    const OpRecord& op = model_.op(layers[i]);
    storage[i] = take_parameters(memory, model_, op, moves);
    if (!memory.fits()) continue;  // go on counting
    const auto weights = static_cast<size_t>(weight_count(model_, op));
    const auto channels = static_cast<size_t>(model_.output_of(op).channels);
    if (moves) __builtin_memcpy(storage[i].weights, model_.weights(op), weights);
    __builtin_memcpy(storage[i].bias, model_.bias(op), 4 * channels);
  }
  return true;
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
      board::feed_watchdog();
      uint32_t checksums[longest_stream] = {};
      forward_rows(trainer_.network(), plan, workspace, i, [&](int32_t op, const int8_t* rows, int32_t bytes) {
        const auto* first = reinterpret_cast<const uint8_t*>(rows);
        checksums[op - i] = crc32(first, static_cast<size_t>(bytes), checksums[op - i]);
      });
      for (int32_t op = i; op <= plan.segment_end(i); ++op) verify_.activation(sample, op, checksums[op - i]);
    }
  }
  return expected_values_were_read();
}

bool Session::read_sample(void* context, int32_t index, int8_t* image, int32_t* label) {
  const StepReader& reader = *static_cast<const StepReader*>(context);
  int32_t sample = 0;
  return reader.card->step_sample(reader.step, index, &sample) && reader.card->sample(sample, image, label);
}

bool Session::train(int32_t index) {
  StepRecord record;
  if (!card_.step(index, &record)) return fail("step", {Code::sample_unreadable});
  const uint32_t started = board::milliseconds();
  StepReader reader = {&card_, index};
  StepResult result = {};
  const Status status =
      trainer_.step(record.step, record.learning_rate, record.samples, {&reader, read_sample}, &result);
  if (!status.ok()) return fail("step", status);
  log_step(index, record, result, board::milliseconds() - started, card_.header().steps - index - 1);
  verify_.result(index, result);
  for (int32_t i = 0; i < trainer_.layer_count(); ++i) verify_.parameters(index, i, trainer_.layer(i));
  return expected_values_were_read();
}

bool Session::expected_values_were_read() {
  return storage_.fault().why == nullptr || fail("card", "an expected value cannot be read");
}

bool Session::step() {
  board::feed_watchdog();
  board::set_led(true);
  const bool trained = train(next_);
  board::set_led(false);
  if (!trained) return false;
  trained_ = true;
  ++next_;
  return (!finished() && next_ % card_.header().save_interval != 0) || save();
}

// The mark is where the plan says, but for the gap that rounds the arena up to 16 bytes. With a selection before,
// the arena is that of the largest candidate.
void Session::report_arena() {
  if (arena_.painted == 0) {
    log_use("arena", arena_needed_, arena_.bytes, " bytes used");
    return;
  }
  const size_t mark = high_water(arena_.data, arena_.painted);
  log_use("arena", mark, arena_.bytes, " bytes used at most");
  if (mark > arena_.bytes) verify_.failed("arena", "something wrote beyond its end");
  if (trained_ && mark + 16 <= arena_needed_) verify_.failed("arena", "less of it was used than planned");
}

int Session::report() {
  const board::StackUse stack = board::stack_use();
  report_arena();
  log_use("stack", stack.used, stack.bytes, " bytes used at most");
  log_retries(storage_.retries());
  if (stack.used == stack.bytes) verify_.failed("stack", "it is used up: export with a larger one");
  return verify_.report() ? 0 : 1;
}

}  // namespace pmt::firmware
