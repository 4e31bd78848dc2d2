#include "learner/service.hpp"

#include "common/log.hpp"
#include "common/serial.hpp"
#include "core/base/crc32.hpp"
#include "core/base/linked/learning.hpp"
#include "core/input/input_stage.hpp"

namespace pmt::firmware {
namespace {

constexpr uint8_t request_start = 0xA5;
constexpr int32_t most_attempts = 3;  // to read a frame from the host

// As the enumeration's words, which the host compares with.
const char* const state_names[] = {"original", "aligned", "head", "head_alone", "trained"};
static_assert(sizeof state_names / sizeof *state_names == learner_states);
const char* name_of(LearnerState state) { return state_names[static_cast<int32_t>(state)]; }

uint32_t read_word() {
  uint32_t word = 0;
  board::read_serial(&word, sizeof word);
  return word;
}

uint32_t crc_of(const void* bytes, size_t count, uint32_t previous = 0) {
  return crc32(static_cast<const uint8_t*>(bytes), count, previous);
}

}  // namespace

bool Service::open(const ServiceSetup& setup, const board::Memory& arena) {
  chooses_input_ = setup.chooses_input;
  frames_on_host_ = setup.frames_on_host;
  arena_ = arena;
  frames_ = arena.data + setup.learner_bytes;
  Model model;
  Status status = open_model(setup.image, &model);
  if (!status.ok()) {
    reply(status);
    return false;
  }
  frame_bytes_ = static_cast<size_t>(element_count(model.input()));
  sensor_bytes_ = model.stage() == nullptr ? 0 : static_cast<size_t>(frame_bytes(model));
  kept_bytes_ = setup.chooses_input ? sensor_bytes_ : frame_bytes_;
  LearnerSetup core = {};
  core.image = setup.image.bytes;
  core.image_bytes = setup.image.count;
  core.clean = setup.clean;
  core.clean_count = setup.clean_count;
  core.weights = setup.weights;
  core.kernels = &device_kernels();
  core.frames = {this, read_frame, setup.frames_on_host ? nullptr : write_frame};
  core.chooses_input = setup.chooses_input;
  core.samples = setup.samples;
  core.held_out = setup.held_out;
  core.keeps_confirmed = setup.keeps_confirmed;
  core.streams = setup.streams;
  core.stream_count = setup.stream_count;
  core.keeps_activations = setup.external != nullptr;
  core.external = setup.external;
  core.external_bytes = setup.external_bytes;
  core.epochs = setup.epochs;
  const bool learns = linked::learning && setup.samples > 0;
  if (learns) {
    core.storage = setup.open_states(LearnerParameters::largest(model, setup.epochs.layers, setup.weights));
  }
  status = learner_.open(core, arena.data, setup.learner_bytes);
  if (!status.ok()) {
    reply(status);
    return false;
  }
  if (learns) {
    Line()
        .text("learner: ")
        .text(core.storage != nullptr ? "states outlive a reset"
                                      : "no card, or no room there: states are lost at a reset")
        .print();
  }
  return true;
}

bool Service::read_frame(void* context, int32_t index, void* frame) {
  const Service& self = *static_cast<const Service*>(context);
  if (!self.frames_on_host_) {
    __builtin_memcpy(frame, self.frames_ + self.kept_bytes_ * static_cast<size_t>(index), self.kept_bytes_);
    return true;
  }
  for (int32_t i = 0; i < most_attempts; ++i) {
    Line().text("frame ").number(index).print();
    board::read_serial(frame, self.kept_bytes_);
    if (read_word() == crc_of(frame, self.kept_bytes_)) return true;
  }
  return false;
}

bool Service::write_frame(void* context, int32_t index, const void* frame) {
  const Service& self = *static_cast<const Service*>(context);
  __builtin_memcpy(self.frames_ + self.kept_bytes_ * static_cast<size_t>(index), frame, self.kept_bytes_);
  return true;
}

// A damaged request is answered, and nothing is done; what is left of it is passed over.
bool Service::receive(Request* request) {
  do {
    board::read_serial(&request->start, 1);
  } while (request->start != request_start);
  board::read_serial(&request->command, sizeof *request - 1);
  uint32_t crc = crc_of(request, sizeof *request);
  const bool takes_frame = request->command == 'O' || request->command == 'P',
             is_raw = takes_frame && sensor_bytes_ > 0;
  if (takes_frame) {
    void* const to = is_raw ? static_cast<void*>(learner_.sensor_frame()) : learner_.frame();
    const size_t bytes = is_raw ? sensor_bytes_ : frame_bytes_;
    board::read_serial(to, bytes);
    crc = crc_of(to, bytes, crc);
  }
  if (read_word() == crc) return true;
  Line().text("error: the request is damaged").print();
  return false;
}

void Service::reply(const Status& status) const {
  if (status.ok()) {
    Line().text("ok").print();
  } else {
    Line().text("error: ").text(message(status.code)).print();
  }
}

// Runs the stage, unless samples are the sensor's frames.
const void* Service::observed_frame() {
  if (chooses_input_) return learner_.sensor_frame();
  if (sensor_bytes_ > 0) (void)learner_.run_stage();
  return learner_.frame();
}

void Service::reply_prediction() {
  Prediction prediction = {};
  Status status = sensor_bytes_ > 0 ? learner_.run_stage() : Status{};
  if (status.ok()) status = learner_.predict(learner_.frame(), &prediction);
  if (!status.ok()) return reply(status);
  uint32_t margin = 0;
  __builtin_memcpy(&margin, &prediction.margin, sizeof margin);
  const auto bytes = sizeof(float) * static_cast<size_t>(learner_.model().classes());
  Line line;
  line.text("predicted ").number(prediction.label).text(", margin ").hex(margin);
  line.text(", logits ").hex(crc_of(prediction.logits, bytes)).print();
}

void Service::reply_scores() const {
  Line line;
  line.text("scores");
  for (int32_t i = 0; i < learner_states; ++i) {
    const LearnerScore score = learner_.held_out(static_cast<LearnerState>(i));
    line.text(i == 0 ? " " : ", ").text(state_names[i]).text(" ").number(score.loss_sum).text(" ");
    line.number(score.correct).text(" ").number(score.count);
  }
  line.text(", candidate ").text(name_of(learner_.candidate())).print();
}

void Service::reply_force() const {
  Line line;
  line.text("in force: ").text(name_of(learner_.in_force())).text(learner_.on_trial() ? ", on trial, " : ", ");
  line.text("parameters ").hex(learner_.checksum()).print();
}

// A step at a time: in between a watchdog is fed, and where there are threads, others run.
void Service::reply_run(const Request& request) {
  const int32_t steps = request.argument;
  bool done = !learner_.is_running();
  Status status = {};
  for (int32_t i = 0; status.ok() && !done && (i < steps || steps == 0); ++i) {
    board::feed_watchdog();
    status = learner_.run({1, 0}, &done);
  }
  if (!status.ok()) return reply(status);
  Line().text("ran ").number(learner_.steps()).text(done ? " steps, done" : " steps").print();
}

// False: the program ends.
bool Service::answer(const Request& request) {
  switch (request.command) {
    case 'O': reply(learner_.observe(observed_frame(), request.argument, static_cast<Role>(request.option))); break;
    case 'P': reply_prediction(); break;
    case 'B': reply(learner_.begin(static_cast<LearnerPhase>(request.option))); break;
    case 'R': reply_run(request); break;
    case 'S': reply_scores(); break;
    case 'F': reply_force(); break;
    case 'T': Line().text("time ").number(board::milliseconds()).print(); break;
    case 'X': reply(learner_.cancel()); break;
    case 'C': reply(learner_.commit()); break;
    case 'K': reply(learner_.confirm()); break;
    case 'Z': reply(learner_.roll_back()); break;
    case 'Q': return false;
    default: Line().text("error: the request is unknown").print();
  }
  return true;
}

void Service::serve() {
  for (bool running = true; running;) {
    board::feed_watchdog();
    Request request = {};
    if (receive(&request)) running = answer(request);
  }
}

void Service::report() const {
  const board::StackUse stack = board::stack_use();
  Line()
      .text("stack: ")
      .number(static_cast<int64_t>(stack.used))
      .text(" of ")
      .number(static_cast<int64_t>(stack.bytes))
      .print();
  if (arena_.painted == 0) return;
  Line line;
  line.text("arena: ").number(static_cast<int64_t>(high_water(arena_.data, arena_.painted))).text(" of ");
  line.number(static_cast<int64_t>(arena_.bytes)).print();
}

}  // namespace pmt::firmware
