#include "arrays.hpp"
#include "core/learn/head_loss.hpp"
#include "core/learn/paired_losses.hpp"
#include "host/host_head.hpp"
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

// The strength, the multiply-accumulates of the solution and those of choosing the strength.
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
    labels = checked_labels(labels_object, view, count);
    data.inputs.labels = labels.data();
  }
  data.folds = checked_folds(folds_object, count);
  data.fold_count = fold_count(data.folds);
  host::HeadSolution found = {};
  {
    const py::gil_scoped_release release;
    found = host::solve_head(model, op, data, strength, threads, interrupted);
  }
  return py::make_tuple(found.strength, found.macs, found.choice_macs);
}

// Whether the first of two arrays of losses of the same samples, int32 (N,), is higher by so many standard errors.
bool is_worse(const py::object& losses_object, const py::object& than_object, int32_t errors) {
  const auto losses = checked<int32_t>(losses_object, "losses", "int32");
  const auto than = checked<int32_t>(than_object, "than", "int32");
  const bool fits = losses.ndim() == 1 && than.ndim() == 1 && losses.shape(0) == than.shape(0);
  if (!fits || losses.shape(0) > PairedLosses::most_samples) {
    throw py::value_error("losses and than must have one shape, (N,) of at most " +
                          std::to_string(PairedLosses::most_samples) + "; got " + shape_text(losses) + " and " +
                          shape_text(than));
  }
  if (errors < 1 || errors > PairedLosses::most_errors) {
    throw py::value_error("errors must be 1.." + std::to_string(PairedLosses::most_errors) + ", got " +
                          std::to_string(errors));
  }
  PairedLosses pairs;
  for (py::ssize_t i = 0; i < losses.shape(0); ++i) pairs.add(losses.at(i), than.at(i));
  return pairs.is_worse(errors);
}

}  // namespace

void register_learn(py::module_& m) {
  m.def("is_worse", &is_worse, py::arg("losses"), py::arg("than"), py::arg("errors"));
  m.attr("NO_FOLD") = static_cast<int>(no_fold);
  m.def("solve_head", &solve_head, py::arg("model"), py::arg("op"), py::arg("inputs"), py::arg("labels"),
        py::arg("loss"), py::arg("folds") = py::none(), py::arg("strength") = 0.0f, py::arg("threads") = 0);
}

}  // namespace pmt::bindings
