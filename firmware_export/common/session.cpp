#include "common/session.hpp"

#include "core/base/crc32.hpp"
#include "core/net/stream_run.hpp"
#include "core/train/device_setup.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt::firmware {
namespace {

bool run_in_order(void*, int32_t count, Executor::Task task, void* argument, bool) {
  for (int32_t i = 0; i < count; ++i) {
    board::feed_watchdog();
    task(argument, i, 0);
  }
  return true;
}

bool never(void*, int32_t) {
  board::feed_watchdog();
  return false;
}

// The lines that a run prints, and that `pmt monitor` reads: see docs/guides/card.md. A line that is cut off
// matches none of them.
void log_model(const CardHeader& header, size_t model_bytes, int32_t queries) {
  Line line;
  line.text("model: ").number(header.ops).text(" ops, ");
  line.number(static_cast<int64_t>(model_bytes)).text(" bytes in flash").print();
  line.text("train: ").number(header.layers).text(" layers, ").number(header.steps).text(" steps of up to ");
  line.number(header.batch).text(" samples, ").number(queries).text(" queries, a checkpoint every ");
  line.number(header.save_interval).text(header.save_interval == 1 ? " step" : " steps").print();
}

void log_resume(const CardHeader& header, const StateSlots& slots) {
  Line line;
  line.text("resume: ").number(slots.tag()).text(" of ").number(header.steps).text(" steps done, checkpoint ");
  line.number(slots.generation()).print();
}

void log_step(int32_t index, const StepRecord& record, const StepResult& result, uint32_t milliseconds,
              const CardHeader& header) {
  Line line;
  line.text("step ").number(index).text(": loss ");
  line.ratio(result.loss_sum, int64_t{record.samples} << loss_fraction_bits, 4);
  if (header.targets == 0) line.text(", accuracy ").ratio(result.correct, record.samples, 3);
  line.text(", ").number(result.changed).text(" weights changed, ");
  line.number(milliseconds).text(" ms, ").number(header.steps - index - 1).text(" to go").print();
}

void log_checkpoint(const StateSlots& slots, uint32_t milliseconds) {
  Line line;
  line.text("checkpoint ").number(slots.generation()).text(": ").number(slots.tag()).text(" steps done, ");
  line.number(milliseconds).text(" ms").print();
}

void log_use(const char* what, size_t used, size_t bytes, const char* how) {
  Line line;
  line.text(what).text(": ").number(static_cast<int64_t>(used)).text(" of ");
  line.number(static_cast<int64_t>(bytes)).text(how).print();
}

void log_retries(int32_t retries) {
  if (retries > 0) Line().text("card: ").number(retries).text(retries == 1 ? " retry" : " retries").print();
}

}  // namespace

Executor watched_executor() { return {1, nullptr, run_in_order, never}; }

bool Session::fail(const char* what, const char* why, int32_t op) {
  board::set_led(false);
  if (storage_.fault().why != nullptr) {
    verify_.failed(storage_.fault());
  } else {
    verify_.failed(what, why);
  }
  print_error(storage_.fault(), what, why, op);
  return false;
}

bool Session::fail(const char* what, const Status& status) { return fail(what, message(status.code), status.index()); }

bool Session::open(const ModelImage& image, const board::Memory& arena) {
  if (!open_card(image) || !open_trainer(arena) || !read_surprisal()) return false;
  log_model(card_.header(), image.count, options_.queries);
  return true;
}

bool Session::open_card(const ModelImage& image) {
  const Status status = open_model(image, &model_);
  if (!status.ok()) return fail("model", status);
  const Problem problem = card_.open(&storage_, model_);
  if (problem != nullptr) return fail("card", problem);
  verify_.open(model_, card_);
  return card_.options(&options_) || fail("options", {Code::sample_unreadable});
}

// The arena: layer list, the ops that stream, parameters of the layers under training, then the
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
    Line line;
    line.text("arena: ").number(static_cast<int64_t>(arena.bytes)).text(" bytes, at least ");
    line.number(static_cast<int64_t>(arena_needed_)).text(" needed").print();
  }
  return fail("trainer", status);
}

// Reads the setup of the training from the card. Where the memory does not suffice, nothing is read into it.
bool Session::read_setup(Arena& memory, TrainerSetup* setup) {
  const int32_t count = card_.header().layers;
  const auto [layers, streams, storage] = take_lists(memory, count, card_.stream_count());
  if (!memory.fits()) return true;
  for (int32_t i = 0; i < card_.stream_count(); ++i) {
    if (!card_.stream(i, &streams[i])) return fail("streams", {Code::sample_unreadable});
  }
  *setup = {&model_, &device_kernels(), &options_, layers, count, storage, card_.header().batch, watched_executor()};
  setup->compact = true;
  setup->streams = streams;
  setup->stream_count = card_.stream_count();
  return copy_layers(memory, layers, storage);
}

// The mean prediction after the steps before the card's first.
bool Session::read_surprisal() {
  const MeanPrediction& prediction = trainer_.prediction();
  const uint32_t bytes = card_.header().surprisal.bytes;
  const bool fits = prediction.count() == card_.header().surprisal_values &&
                    (bytes == 0 || bytes == static_cast<uint32_t>(prediction.count()) * sizeof(float));
  if (!fits) return fail("optimizer state", {Code::surprisal});
  if (bytes == 0) return true;
  if (!card_.surprisal(prediction.surprisal())) return fail("optimizer state", {Code::sample_unreadable});
  const Status status = prediction.check();
  return status.ok() || fail("optimizer state", status);
}

bool Session::copy_layers(Arena& memory, int32_t* layers, LayerStorage* storage) {
  for (int32_t i = 0; i < card_.header().layers; ++i) {
    if (!card_.layer(i, &layers[i])) return fail("layers", {Code::sample_unreadable});
    const bool trainable = layers[i] >= 0 && layers[i] < model_.op_count() && has_weights(model_.op(layers[i]));
    if (!trainable) return fail("layers", {Code::layer_not_trainable, layers[i]});
    const OpRecord& op = model_.op(layers[i]);
    storage[i] = take_parameters(memory, model_, op, options_.train_weights != 0);
    if (memory.fits()) copy_parameters(model_, op, storage[i]);  // else go on counting
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

bool Session::train(int32_t index) {
  StepRecord record;
  if (!card_.step(index, &record)) return fail("step", {Code::sample_unreadable});
  const uint32_t started = board::milliseconds();
  StepReader reader = {&card_, index};
  StepResult result = {};
  SampleSource source = {&reader, read_sample};
  if (card_.header().targets > 0) source.read_targets = read_targets;
  const Status status = trainer_.step(record.step, record.learning_rate, record.samples, source, &result);
  if (!status.ok()) return fail("step", status);
  log_step(index, record, result, board::milliseconds() - started, card_.header());
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

// Weights and biases of each layer, then the mean prediction.
StatePart Session::checkpoint_part(const void* context, int32_t index) {
  const Session& self = *static_cast<const Session*>(context);
  const int32_t behind_layers = index - 2 * self.trainer_.layer_count();
  if (behind_layers > 0) return {nullptr, 0};
  if (behind_layers == 0) {
    const MeanPrediction& prediction = self.trainer_.prediction();
    return {reinterpret_cast<uint8_t*>(prediction.surprisal()),
            static_cast<size_t>(prediction.count()) * sizeof(float)};
  }
  const Layer& layer = self.trainer_.layer(index / 2);
  if (index % 2 == 1) {
    return {reinterpret_cast<uint8_t*>(layer.bias), static_cast<size_t>(layer.channels) * sizeof(int32_t)};
  }
  const bool trained = self.options_.train_weights != 0;  // else they are in flash
  return {reinterpret_cast<uint8_t*>(layer.weights), trained ? static_cast<size_t>(layer.weight_count) : 0};
}

bool Session::resume() {
  const CardHeader& h = card_.header();
  // A step begins with activations of its own.
  places_.open(&storage_, h.first_slot, h.slot_blocks, trainer_.workspace(0).activations,
               static_cast<size_t>(trainer_.plan().bytes()));
  slots_.open(places_.storage(), h.model_crc32);
  Status status = slots_.boot();
  if (!status.ok()) return fail("checkpoint", status);
  if (!slots_.has_state()) {
    return slots_.never_written() ||
           fail("card", "both checkpoints on the card are damaged: write card.img to it again");
  }
  if (slots_.tag() > static_cast<uint32_t>(h.steps)) return fail("card", "the checkpoint is of a later step");
  status = slots_.load(checkpoint());
  if (!status.ok()) return fail("checkpoint", status);
  status = trainer_.prediction().check();
  if (!status.ok()) return fail("optimizer state", status);
  next_ = static_cast<int32_t>(slots_.tag());
  verify_.resume(next_);
  log_resume(h, slots_);
  return true;
}

bool Session::save() {
  const uint32_t started = board::milliseconds();
  const Status status = slots_.write(checkpoint(), static_cast<uint32_t>(next_), false);
  if (!status.ok()) return fail("checkpoint", status);
  log_checkpoint(slots_, board::milliseconds() - started);
  return true;
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
  if (stack.bytes == 0) {
    Line().text("stack: not measured").print();
  } else {
    log_use("stack", stack.used, stack.bytes, " bytes used at most");
  }
  log_retries(storage_.retries());
  if (stack.bytes != 0 && stack.used == stack.bytes) verify_.failed("stack", "it is used up: export with a larger one");
  return verify_.report() ? 0 : 1;
}

}  // namespace pmt::firmware
