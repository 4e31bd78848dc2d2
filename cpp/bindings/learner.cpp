#include <pybind11/stl.h>

#include <mutex>

#include "arrays.hpp"
#include "host/host_learner.hpp"
#include "register.hpp"
#include "words.hpp"

namespace pmt::bindings {
namespace {

using host::HostLearner;
using namespace py::literals;

// Calls of one learner wait for one another.
class LearnerObject {
 public:
  explicit LearnerObject(host::HostLearnerSetup setup) : host_(std::move(setup)) {}

  template <typename Call>
  auto locked(const Call& call) {
    const py::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(mutex_);
    return call(host_.learner());
  }
  template <typename Call>
  void checked_call(const Call& call) {
    host_.check(locked(call));
  }
  HostLearner& host() { return host_; }
  bool takes_frames() const { return host_.setup().chooses_input; }
  const Model& model() { return host_.learner().model(); }

 private:
  HostLearner host_;
  std::mutex mutex_;
};

// Means and deviations of the channels, float32 (channels, 2); behind them the windows' floats, in pairs.
std::vector<ChannelStatistics> checked_clean(const py::object& object) {
  std::vector<ChannelStatistics> clean;
  if (object.is_none()) return clean;
  const auto values = checked<float>(object, "clean", "float32");
  if (values.ndim() != 2 || values.shape(1) != 2) {
    throw py::value_error("clean must have shape (channels, 2), means and deviations; got " + shape_text(values));
  }
  for (py::ssize_t c = 0; c < values.shape(0); ++c) clean.push_back({values.at(c, 0), values.at(c, 1)});
  return clean;
}

// `epochs`: None, or options, the layers of each block, batch, epochs, learning rate and its final fraction.
host::HostLearnerSetup setup_of(const py::bytes& image, const py::object& clean, AlignedWeights weights,
                                bool chooses_input, int32_t samples, int32_t held_out, bool keeps_confirmed,
                                bool keeps_activations, const py::object& epochs, const std::string& storage,
                                bool trial_goes_on) {
  const auto bytes = image.cast<std::string>();
  host::HostLearnerSetup setup = {};
  setup.image = {bytes.begin(), bytes.end()};
  setup.clean = checked_clean(clean);
  setup.weights = weights;
  setup.chooses_input = chooses_input;
  setup.samples = samples;
  setup.held_out = held_out;
  setup.keeps_confirmed = keeps_confirmed;
  setup.keeps_activations = keeps_activations;
  setup.storage = storage;
  setup.trial_goes_on = trial_goes_on;
  if (epochs.is_none()) return setup;
  const auto given = epochs.cast<py::tuple>();
  setup.options = given[0].cast<TrainerOptions>();
  setup.blocks = given[1].cast<std::vector<std::vector<int32_t>>>();
  setup.batch = given[2].cast<int32_t>();
  setup.epochs = given[3].cast<int32_t>();
  setup.learning_rate = given[4].cast<float>();
  setup.final_learning_rate = given[5].cast<float>();
  return setup;
}

// Inputs of the network one after another, or frames of its sensor where a learner takes these.
struct Samples {
  py::array array;  // that holds them
  const uint8_t* data;
  py::ssize_t count, bytes;  // bytes of each

  const uint8_t* operator[](py::ssize_t i) const { return data + i * bytes; }
};

Samples samples_of(LearnerObject& self, const py::object& object) {
  const py::array array = self.takes_frames() ? py::array(checked_frames(object, self.model()))
                                              : py::array(checked_images(object, self.model()));
  const py::ssize_t count = array.shape(0);
  return {array, static_cast<const uint8_t*>(array.data()), count, array.size() / std::max<py::ssize_t>(count, 1)};
}

Status predict_one(Learner& learner, const Samples& samples, py::ssize_t i, bool is_frame, Prediction* prediction) {
  if (!is_frame) return learner.predict(reinterpret_cast<const int8_t*>(samples[i]), prediction);
  std::copy_n(samples[i], samples.bytes, learner.sensor_frame());
  PMT_RETURN_IF_ERROR(learner.run_stage());
  return learner.predict(learner.frame(), prediction);
}

py::tuple predict(LearnerObject& self, const py::object& object) {
  const Samples samples = samples_of(self, object);
  const py::ssize_t count = samples.count, classes = self.model().classes();
  Int64Array labels(count);
  FloatArray logits({count, classes}), margins(count);
  for (py::ssize_t i = 0; i < count; ++i) {
    Prediction prediction = {};
    float* const row = logits.mutable_data(i, 0);
    self.checked_call([&](Learner& learner) {
      const Status status = predict_one(learner, samples, i, self.takes_frames(), &prediction);
      if (status.ok()) std::copy_n(prediction.logits, classes, row);  // another call writes over them
      return status;
    });
    labels.mutable_at(i) = prediction.label;
    margins.mutable_at(i) = prediction.margin;
  }
  return py::make_tuple(labels, margins, logits);
}

// Which limit leaves no room, where this many images of a call were taken in before.
std::string no_room(const host::HostLearnerSetup& setup, int32_t samples, py::ssize_t taken, py::ssize_t given) {
  const std::string here = ": the first " + std::to_string(taken) + " of " + std::to_string(given) + " were taken in; ";
  if (samples < setup.samples) {
    return "held_out=" + std::to_string(setup.held_out) + " leaves no room for another sample to hold out" + here +
           "give others by role='train', forget() all, or make a learner of a larger held_out";
  }
  return "samples=" + std::to_string(setup.samples) + " leaves no room for another sample" + here +
         "forget() all, or make a learner of more samples";
}

void observe(LearnerObject& self, const py::object& object, const py::object& labels_object, Role role) {
  const Samples samples = samples_of(self, object);
  const auto labels = checked_labels(labels_object, label_count(self.model()), samples.count, no_label);
  for (py::ssize_t i = 0; i < samples.count; ++i) {
    const auto label = static_cast<int32_t>(labels.at(i));
    int32_t full_at = -1;
    self.checked_call([&](Learner& learner) {
      const Status status = learner.observe(samples[i], label, role);
      if (status.code != Code::learner_full) return status;
      full_at = learner.sample_count();
      return Status{};
    });
    if (full_at >= 0) throw py::value_error(no_room(self.host().setup(), full_at, i, samples.count));
  }
}

// Samples by what counts them, see LearnerSamples::Use.
struct SampleCounts {
  int32_t alignment, head, held_out;
  bool has_classes;
};

// What a phase needs and there is, by the rules of Learner::begin.
std::string too_few(LearnerPhase phase, const SampleCounts& found, const host::HostLearnerSetup& setup) {
  const auto number = [](int32_t count) { return std::to_string(count); };
  const bool all = phase == LearnerPhase::all, aligns = !setup.clean.empty();
  const std::string begun = "too few samples for phase='" + py::cast(phase).cast<std::string>() +
                            "': " + (all && !aligns ? "without statistics of clean images " : "") + "it needs ";
  if (phase == LearnerPhase::align || phase == LearnerPhase::input || (all && aligns)) {
    const int32_t fewest = phase == LearnerPhase::input ? InputPhase::fewest_samples : ChannelPhase::fewest_samples;
    return begun + number(fewest) + " or more that are not held out, equal images counted once, and there are " +
           number(found.alignment) + "; observe() more";
  }
  const std::string fewest = number(fewest_held_out);
  const std::string classes = found.head == 0 ? "" : found.has_classes ? " of different classes" : " of one class";
  const bool learns = phase != LearnerPhase::evaluate;
  const std::string text = begun + (learns ? "labels of two classes or more to learn from and " : "") + fewest +
                           " or more held out, of which equal images count once, and there are " +
                           (learns ? number(found.head) + classes + " and " : "") + number(found.held_out) + "; ";
  const bool has_some = learns && found.head > 0 && !found.has_classes;
  if (setup.held_out >= fewest_held_out) {
    return text + (has_some ? "observe() images of other classes with labels" : "observe() more with labels");
  }
  return text + "make a learner with held_out=" + fewest + " or more, this one has " + number(setup.held_out);
}

void begin(LearnerObject& self, LearnerPhase phase) {
  bool enough = true;
  SampleCounts found = {};
  self.checked_call([&](Learner& learner) {
    const Status status = learner.begin(phase);
    if (status.code != Code::learner_samples) return status;
    enough = false;
    const LearnerSamples& samples = learner.samples();
    found = {samples.count(LearnerSamples::Use::alignment), samples.count(LearnerSamples::Use::head),
             samples.held_out(), samples.has_classes()};
    return Status{};
  });
  if (!enough) throw py::value_error(too_few(phase, found, self.host().setup()));
}

// Runs to the end, or up to a limit of steps or time; True at the end. Ctrl-C ends the call, not the phase.
bool run(LearnerObject& self, int32_t steps, uint32_t milliseconds) {
  bool done = false;
  const auto call = [&](Learner& learner) {
    if (steps != 0 || milliseconds != 0) return learner.run({steps, milliseconds}, &done);
    Status status = {};
    while (status.ok() && !done && !interrupted()) status = learner.run({1, 0}, &done);
    return status;
  };
  self.checked_call(call);
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  return done;
}

template <typename Of>
auto scorer(LearnerScore (Learner::*score_of)(Of) const) {
  return [score_of](LearnerObject& self, Of of) {
    const LearnerScore score = self.locked([&](Learner& learner) { return (learner.*score_of)(of); });
    return py::make_tuple(score.loss_sum, score.correct, score.count);
  };
}

// Bytes by part, and (begin, end, band) of each run of ops that streams.
py::tuple plan_learner(const py::bytes& image, const py::object& clean, AlignedWeights weights, bool chooses_input,
                       int32_t samples, int32_t held_out, bool keeps_confirmed, bool keeps_activations,
                       const py::object& epochs) {
  const auto setup = setup_of(image, clean, weights, chooses_input, samples, held_out, keeps_confirmed,
                              keeps_activations, epochs, "", false);
  const auto device = host::plan_learner(setup, arm_dsp_kernels());
  const LearnerMemory& memory = device.memory;
  const py::dict parts("persistent"_a = memory.persistent, "predict"_a = memory.predict, "input"_a = memory.input,
                       "align"_a = memory.align, "head"_a = memory.head, "epochs"_a = memory.epochs,
                       "external"_a = memory.external);
  py::list streams;
  for (const StreamedOps& ops : device.streams) streams.append(py::make_tuple(ops.begin, ops.end, ops.band));
  return py::make_tuple(parts, memory.needed(), streams);
}

size_t state_file_bytes(const py::bytes& image, AlignedWeights weights, const py::object& epochs) {
  return host::state_file_bytes(setup_of(image, py::none(), weights, false, 0, 0, false, false, epochs, "", false));
}

template <typename Value>
auto getter(Value (Learner::*get)() const) {
  return [get](LearnerObject& self) { return self.locked([&](Learner& learner) { return (learner.*get)(); }); };
}

auto call(Status (Learner::*change)()) {
  return [change](LearnerObject& self) { self.checked_call([&](Learner& learner) { return (learner.*change)(); }); };
}

}  // namespace

void register_learner(py::module_& m) {
  py::class_<LearnerObject>(m, "Learner")
      .def(py::init([](const py::bytes& image, const py::object& clean, AlignedWeights weights, bool chooses_input,
                       int32_t samples, int32_t held_out, bool keeps_confirmed, bool keeps_activations,
                       const py::object& epochs, const std::string& storage, bool trial_goes_on) {
             return std::make_unique<LearnerObject>(setup_of(image, clean, weights, chooses_input, samples, held_out,
                                                             keeps_confirmed, keeps_activations, epochs, storage,
                                                             trial_goes_on));
           }),
           py::arg("image"), py::arg("clean"), py::arg("weights"), py::arg("chooses_input"), py::arg("samples"),
           py::arg("held_out"), py::arg("keeps_confirmed"), py::arg("keeps_activations"),
           py::arg("epochs") = py::none(), py::arg("storage") = "", py::arg("trial_goes_on") = false)
      .def("predict", &predict, py::arg("images"))
      .def("observe", &observe, py::arg("images"), py::arg("labels"), py::arg("role"))
      .def("forget", call(&Learner::forget))
      .def("begin", &begin, py::arg("phase"))
      .def("run", &run, py::arg("steps") = 0, py::arg("milliseconds") = 0)
      .def("cancel", call(&Learner::cancel))
      .def("commit", call(&Learner::commit))
      .def("confirm", call(&Learner::confirm))
      .def("roll_back", call(&Learner::roll_back))
      .def("held_out", scorer(&Learner::held_out), py::arg("state"))
      .def("trial", scorer(&Learner::trial), py::arg("block"))
      .def("image_in_force",
           [](LearnerObject& self) {
             std::vector<uint8_t> image;
             self.checked_call([&](Learner& learner) {
               if (!learner.has_force()) return Status{Code::learner_call};
               image = self.host().image_in_force();
               return Status{};
             });
             return to_bytes(image);
           })
      // The section of the stage in force; none where it is the image's.
      .def("stage_in_force",
           [](LearnerObject& self) {
             FilterChain filters = {};
             const bool has = self.locked([&](Learner& learner) {
               const FilterChain* found = learner.filters_in_force();
               if (found != nullptr) filters = *found;
               return found != nullptr;
             });
             return has ? stage_section(*self.model().stage(), filters) : py::bytes();
           })
      .def_property_readonly("block", getter(&Learner::block))
      .def_property_readonly("candidate", getter(&Learner::candidate))
      .def_property_readonly("in_force", getter(&Learner::in_force))
      .def_property_readonly("on_trial", getter(&Learner::on_trial))
      .def_property_readonly("replaces_others", getter(&Learner::replaces_others))
      .def_property_readonly("finds_damage", getter(&Learner::finds_damage))
      .def_property_readonly(
          "is_cut_off",
          [](LearnerObject& self) { return self.locked([&](Learner&) { return self.host().is_cut_off(); }); })
      .def_property_readonly("has_force", getter(&Learner::has_force))
      .def_property_readonly("checksum", getter(&Learner::checksum))
      .def_property_readonly("is_running", getter(&Learner::is_running))
      .def_property_readonly("steps", getter(&Learner::steps))
      .def_property_readonly("samples", getter(&Learner::sample_count));
  m.def("plan_learner", &plan_learner, py::arg("image"), py::arg("clean"), py::arg("weights"), py::arg("chooses_input"),
        py::arg("samples"), py::arg("held_out"), py::arg("keeps_confirmed"), py::arg("keeps_activations"),
        py::arg("epochs") = py::none());
  m.def("state_file_bytes", &state_file_bytes, py::arg("image"), py::arg("weights"), py::arg("epochs"));
  m.attr("LEARNER_STATES") = split(words<LearnerState>);
  m.attr("LEARNER_PHASES") = split(words<LearnerPhase>);
  m.attr("LEARNER_ROLES") = split(words<Role>);
  m.attr("ALIGNED_WEIGHTS") = split(words<AlignedWeights>);
}

}  // namespace pmt::bindings
