#include <algorithm>
#include <cmath>

#include "arrays.hpp"
#include "core/learn/folds.hpp"
#include "core/learn/head_loss.hpp"
#include "core/learn/input_search.hpp"
#include "core/learn/shifted_view.hpp"
#include "core/learn/state_choice.hpp"
#include "core/learn/view_disagreement.hpp"
#include "host/host_head.hpp"
#include "host/host_model.hpp"
#include "register.hpp"
#include "words.hpp"

namespace pmt::bindings {
namespace {

using host::HostModel;

Int8Array checked_inputs(const py::object& object, int32_t features) {
  auto inputs = checked<int8_t>(object, "inputs", "int8");
  if (inputs.ndim() != 2 || inputs.shape(1) != features || inputs.shape(0) < 1 || inputs.shape(0) >= (1 << 30)) {
    throw py::value_error("inputs must have shape (N, " + std::to_string(features) +
                          ") for this layer, N at least 1; got " + shape_text(inputs));
  }
  return inputs;
}

std::vector<uint8_t> checked_folds(const py::object& object, py::ssize_t count) {
  if (object.is_none()) return {};
  const auto folds = checked<uint8_t>(object, "folds", "uint8");
  if (folds.ndim() != 1 || folds.shape(0) != count) {
    throw py::value_error("folds must have shape (" + std::to_string(count) + ",), one for each sample; got " +
                          shape_text(folds));
  }
  return {folds.data(), folds.data() + folds.size()};
}

int32_t fold_count(const std::vector<uint8_t>& folds) {
  int32_t count = 0;
  for (const uint8_t fold : folds) {
    if (fold != no_fold) count = std::max(count, fold + 1);
  }
  return count;
}

// Labels and the first sample of each one's unit, both int64 (N,).
struct LabeledUnits {
  Int64Array labels, firsts;

  LabeledUnits(const py::object& labels_object, const py::object& firsts_object)
      : firsts(checked<int64_t>(firsts_object, "firsts", "int64")) {
    labels = checked_labels(labels_object, 1 << 24, firsts.size());
    for (py::ssize_t i = 0; i < firsts.size(); ++i) {
      const int64_t first = firsts.data()[i];
      if (first < 0 || first > i || firsts.data()[first] != first) {
        throw py::value_error("firsts[" + std::to_string(i) + "] must be the first sample of a unit, got " +
                              std::to_string(first));
      }
    }
  }

  static FoldSample read(void* context, int32_t index) {
    const LabeledUnits& units = *static_cast<const LabeledUnits*>(context);
    return {static_cast<int32_t>(units.labels.data()[index]), static_cast<int32_t>(units.firsts.data()[index])};
  }

  FoldSamples samples() {
    const auto count = static_cast<int32_t>(labels.size());
    const int64_t* const last = std::max_element(labels.data(), labels.data() + count);
    return {this, read, count, count == 0 ? 0 : static_cast<int32_t>(*last + 1)};
  }
};

// The fold of each sample, uint8 (N,).
py::array_t<uint8_t> assign_folds(const py::object& labels, const py::object& firsts, int32_t number) {
  LabeledUnits units(labels, firsts);
  if (number < 1 || number > most_folds) {
    throw py::value_error("number must be 1.." + std::to_string(most_folds) + ", got " + std::to_string(number));
  }
  const FoldSamples samples = units.samples();
  std::vector<int32_t> counts(static_cast<size_t>(fold_counts(samples.classes, number)));
  py::array_t<uint8_t> folds(samples.count);
  assign_folds(samples, number, counts.data(), folds.mutable_data());
  return folds;
}

// Those that choose a head's strength; None where it has none.
py::object assign_head_folds(const py::object& labels, const py::object& firsts) {
  LabeledUnits units(labels, firsts);
  const FoldSamples samples = units.samples();
  std::vector<int32_t> counts(static_cast<size_t>(fold_counts(samples.classes, head_folds)));
  py::array_t<uint8_t> folds(samples.count);
  const int32_t found = assign_head_folds(samples, counts.data(), folds.mutable_data());
  return found < 2 ? py::object(py::none()) : folds;
}

// The strength, the multiply-accumulates of the solution and those of choosing the strength, and the mean losses on the
// samples and on those held out, which is None where no folds chose the strength.
py::tuple solve_head(HostModel& model, int32_t op, const py::object& inputs_object, const py::object& labels_object,
                     Loss loss, const py::object& folds_object, float strength, int32_t threads) {
  const Model& view = model.model();
  layer_record(view, op);
  const int32_t features = head_features(view, op);
  if (features == 0 || view.output_of(view.op(op)).channels != view.classes()) {
    throw py::value_error("op " + std::to_string(op) + " is not a linear head");
  }
  if (!(strength >= 0.0f && is_finite(strength))) {
    throw py::value_error("strength must be a finite number of 0 or more, got " + std::to_string(strength));
  }
  if (!is_head_loss(loss)) {
    throw py::value_error(
        "loss must be cross_entropy, squared_error or binary_cross_entropy, for which a head is solved");
  }
  const Int8Array inputs = checked_inputs(inputs_object, features);
  const py::ssize_t count = inputs.shape(0);
  host::HeadData data = {{inputs.data(), nullptr, static_cast<int32_t>(count)}, loss, {}, 0};
  Int64Array labels;
  FloatArray targets;
  if (py::isinstance<py::array_t<float>>(labels_object)) {
    targets = checked_targets(labels_object, view, count);
    data.inputs.targets = targets.data();
  } else {
    labels = checked_labels(labels_object, view.classes(), count);
    data.inputs.labels = labels.data();
  }
  data.folds = checked_folds(folds_object, count);
  data.fold_count = fold_count(data.folds);
  const host::HeadSolution found =
      without_gil([&] { return host::solve_head(model, op, data, strength, threads, interrupted); });
  const bool chose = !std::isnan(found.held_out_loss);
  const py::object held_out = chose ? py::object(py::float_(found.held_out_loss)) : py::none();
  return py::make_tuple(found.strength, found.macs, found.choice_macs, found.loss, held_out);
}

Int32Array checked_losses(const py::object& object, const char* name, py::ssize_t count) {
  const auto losses = checked<int32_t>(object, name, "int32");
  const bool fits = losses.ndim() == 1 && (count < 0 || losses.shape(0) == count);
  if (!fits || losses.shape(0) > PairedLosses::most_samples) {
    throw py::value_error(std::string(name) + " must have shape (N,) of at most " +
                          std::to_string(PairedLosses::most_samples) + ", as many as the other losses; got " +
                          shape_text(losses));
  }
  return losses;
}

void check_errors(int32_t errors) {
  if (errors >= 1 && errors <= PairedLosses::most_errors) return;
  throw py::value_error("errors must be 1.." + std::to_string(PairedLosses::most_errors) + ", got " +
                        std::to_string(errors));
}

// Whether the first of two arrays of losses of the same samples, int32 (N,), is higher by more than `errors` standard
// errors.
bool is_worse(const py::object& losses_object, const py::object& than_object, int32_t errors) {
  const Int32Array losses = checked_losses(losses_object, "losses", -1);
  const Int32Array than = checked_losses(than_object, "than", losses.shape(0));
  check_errors(errors);
  return pmt::is_worse(losses.data(), than.data(), static_cast<int32_t>(losses.shape(0)), errors);
}

// A state as a pair: losses, int32 (N,), and the number of correct samples.
bool is_better(const py::tuple& original, const py::tuple& best, const py::tuple& state, int32_t errors,
               bool is_alternative) {
  const Int32Array first = checked_losses(original[0], "losses of original", -1);
  const Int32Array second = checked_losses(best[0], "losses of best", first.shape(0));
  const Int32Array third = checked_losses(state[0], "losses of state", first.shape(0));
  check_errors(errors);
  return pmt::is_better({first.data(), original[1].cast<int32_t>()}, {second.data(), best[1].cast<int32_t>()},
                        {third.data(), state[1].cast<int32_t>()}, static_cast<int32_t>(first.shape(0)), errors,
                        is_alternative);
}

// The disagreement of each image, int32 (N,), fixed-point, by the logits (views, N, classes) of its views.
Int32Array disagreements(const py::object& object) {
  const auto logits = checked<float>(object, "logits", "float32");
  const bool fits = logits.ndim() == 3 && logits.shape(0) >= 1 && logits.shape(0) <= most_views &&
                    logits.shape(1) >= 1 && logits.shape(1) < (1 << 28) && logits.shape(2) >= 2;
  if (!fits) {
    throw py::value_error("logits must have shape (views, N, classes), 1.." + std::to_string(most_views) +
                          " views, N at least 1, classes at least 2; got " + shape_text(logits));
  }
  const Views views = {logits.data(), static_cast<int32_t>(logits.shape(0)), static_cast<int32_t>(logits.shape(1)),
                       static_cast<int32_t>(logits.shape(2))};
  std::vector<float> surprisal(static_cast<size_t>(views.classes));
  std::vector<int64_t> sums(surprisal.size());
  write_surprisal(views, sums.data(), surprisal.data());
  Int32Array result(logits.shape(1));
  for (int32_t i = 0; i < views.images; ++i) result.mutable_at(i) = disagreement(views, i, surprisal.data());
  return result;
}

// Images int8 (N, height, width, channels) and their copies that are shifted, (views, N, height, width, channels).
Int8Array shifted_images(const py::object& object) {
  const auto images = checked<int8_t>(object, "images", "int8");
  if (images.ndim() != 4) throw py::value_error("images must have four axes; got " + shape_text(images));
  const py::ssize_t count = images.shape(0);
  TensorRecord shape = {};
  shape.height = static_cast<int32_t>(images.shape(1));
  shape.width = static_cast<int32_t>(images.shape(2));
  shape.channels = static_cast<int32_t>(images.shape(3));
  Int8Array views({py::ssize_t{shifted_views}, count, images.shape(1), images.shape(2), images.shape(3)});
  const py::ssize_t bytes = count > 0 ? images.size() / count : 0;
  for (int32_t v = 0; v < shifted_views; ++v) {
    int8_t* const view = views.mutable_data() + v * images.size();
    std::copy_n(images.data(), images.size(), view);
    for (py::ssize_t i = 0; i < count; ++i) shift_image(shape, v, view + i * bytes);
  }
  return views;
}

// A search with memory of its own.
class SearchObject {
 public:
  SearchObject(const host::HostModel& model, int32_t images) : frame_(checked_stage(model)) {
    if (images < 0) throw py::value_error("images must be 0 or more");
    Arena measure;
    search_.take(images, measure);
    memory_ = host::AlignedMemory(std::max<size_t>(measure.used(), 1));
    Arena arena(memory_.data(), memory_.bytes());
    search_.take(images, arena);
    search_.start(model.model(), images);
  }

  InputSearch& search() { return search_; }
  py::bytes section(const FilterChain& filters) const { return stage_section(frame_, filters); }

  void report(const py::object& object, int64_t entropy) {
    if (search_.is_over()) throw py::value_error("the search is over");
    const auto values = checked<int32_t>(object, "disagreements", "int32");
    if (values.ndim() != 1 || values.shape(0) != search_.images()) {
      throw py::value_error("disagreements must have shape (" + std::to_string(search_.images()) + ",); got " +
                            shape_text(values));
    }
    search_.report(values.data(), entropy);
  }

 private:
  static StageRecord checked_stage(const host::HostModel& model) {
    if (model.model().stage() == nullptr) throw py::value_error("the model has no input stage");
    return *model.model().stage();
  }

  StageRecord frame_;
  host::AlignedMemory memory_;
  InputSearch search_;
};

void register_search(py::module_& m) {
  py::class_<SearchObject>(m, "InputSearch")
      .def(py::init<const host::HostModel&, int32_t>(), py::arg("model"), py::arg("images"))
      .def_property_readonly("is_over", [](SearchObject& self) { return self.search().is_over(); })
      .def_property_readonly("images", [](SearchObject& self) { return self.search().images(); })
      .def_property_readonly("candidate", [](SearchObject& self) { return self.section(self.search().candidate()); })
      .def_property_readonly("best", [](SearchObject& self) { return self.section(self.search().best()); })
      .def("report", &SearchObject::report, py::arg("disagreements"), py::arg("entropy"));
  m.def("shifted_images", &shifted_images, py::arg("images"));
  m.attr("INPUT_BANK_SIZE") = input_bank_size;
  m.attr("INPUT_BANK_KEPT") = InputSearch::kept;
  m.attr("INPUT_FEWEST_IMAGES") = InputSearch::fewest_images;
  m.attr("INPUT_BANK_IMAGES") = InputSearch::bank_images;
  m.attr("INPUT_BEST_IMAGES") = InputSearch::best_images;
  m.attr("INPUT_VIEWS") = shifted_views;
}

}  // namespace

void register_learn(py::module_& m) {
  register_search(m);
  m.def("is_worse", &is_worse, py::arg("losses"), py::arg("than"), py::arg("errors"));
  m.def("is_better", &is_better, py::arg("original"), py::arg("best"), py::arg("state"), py::arg("errors"),
        py::arg("is_alternative"));
  m.def("disagreements", &disagreements, py::arg("logits"));
  m.attr("STATE_ERRORS") = state_errors;
  m.attr("FEW_STATE_ERRORS") = few_state_errors;
  m.attr("FEW_HELD_OUT") = few_held_out;
  m.attr("FEWEST_HELD_OUT") = fewest_held_out;
  m.attr("NO_FOLD") = static_cast<int>(no_fold);
  m.attr("FEWEST_OF_CLASS") = fewest_of_class;
  m.def("assign_folds", &assign_folds, py::arg("labels"), py::arg("firsts"), py::arg("number"));
  m.def("assign_head_folds", &assign_head_folds, py::arg("labels"), py::arg("firsts"));
  m.def("solve_head", &solve_head, py::arg("model"), py::arg("op"), py::arg("inputs"), py::arg("labels"),
        py::arg("loss"), py::arg("folds") = py::none(), py::arg("strength") = 0.0f, py::arg("threads") = 0);
}

}  // namespace pmt::bindings
