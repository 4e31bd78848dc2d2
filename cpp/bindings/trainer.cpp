#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>

#include "arrays.hpp"
#include "core/zo/loss_units.hpp"
#include "host/host_selection.hpp"
#include "host/host_trainer.hpp"
#include "register.hpp"
#include "words.hpp"

namespace pmt::bindings {
namespace {

using host::HostModel;
using host::HostTrainer;
using namespace py::literals;

std::string type_name(const py::object& object) { return py::str(py::type::of(object).attr("__name__")); }

std::string name_of(const py::object& function) {
  return py::hasattr(function, "__name__") ? std::string(py::str(function.attr("__name__"))) : type_name(function);
}

// A Python callable as the loss: called with the logits of a block of queries of a sample, under the GIL.
class PythonLoss {
 public:
  PythonLoss(py::object function, int32_t classes)
      : function_(std::move(function)), name_(name_of(function_)), classes_(classes) {}

  // function(logits (rows, 1, classes), labels of the sample) -> losses (rows, 1).
  void write(const host::LogitBlock& block, int32_t* losses) const {
    const py::gil_scoped_acquire gil;
    const FloatArray logits(std::vector<py::ssize_t>{block.rows, 1, classes_}, block.logits);
    const py::object returned = function_(logits, labels(block));
    check_real(returned);
    const auto values = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(returned);
    if (!values) {
      throw py::type_error("loss " + name_ + " must return an array of numbers; got " + type_name(returned));
    }
    if (values.ndim() != 2 || values.shape(0) != block.rows || values.shape(1) != 1) {
      throw py::value_error("loss " + name_ + " must return a loss for each query and sample, shape (" +
                            std::to_string(block.rows) + ", 1) for logits " + shape_text(logits) + "; got " +
                            shape_text(values));
    }
    for (int32_t i = 0; i < block.rows; ++i) losses[i] = fixed(values.data()[i]);
  }

 private:
  // The label of one sample: (1,), targets (1, classes), or None.
  py::object labels(const host::LogitBlock& block) const {
    const host::SampleArray& all = *block.samples;
    if (all.targets != nullptr) {
      const float* own = all.targets + static_cast<ptrdiff_t>(block.sample) * classes_;
      return FloatArray(std::vector<py::ssize_t>{1, classes_}, own);
    }
    if (all.labels == nullptr || all.labels[block.sample] == no_label) return py::none();
    return Int64Array(1, all.labels + block.sample);
  }

  // A mask and an imaginary part would be lost without a word.
  void check_real(const py::object& returned) const {
    if (py::module_::import("numpy").attr("ma").attr("isMaskedArray")(returned).cast<bool>()) {
      throw py::type_error("loss " + name_ + " returned a masked array, whose mask counts for nothing; fill it");
    }
    const auto array = py::array::ensure(returned);
    if (array && array.dtype().kind() == 'c') {
      throw py::type_error("loss " + name_ + " must return real numbers; got complex ones");
    }
  }

  int32_t fixed(double loss) const {
    if (!std::isfinite(loss)) {
      throw py::value_error("loss " + name_ + " returned " + std::string(py::str(py::float_(loss))) +
                            "; every loss must be a finite number, and counts as -1024 to 1024");
    }
    return fixed_loss(static_cast<float>(loss));
  }

  py::object function_;
  std::string name_;
  int32_t classes_;
};

// A trainer whose loss is a Python callable, unless that is None.
std::unique_ptr<HostTrainer> make_trainer(std::shared_ptr<HostModel> model, const TrainerOptions& options,
                                          std::vector<int32_t> layers, int32_t batch, int32_t threads,
                                          const py::object& loss) {
  host::OwnLoss own;
  if (!loss.is_none()) {
    const auto python = std::make_shared<PythonLoss>(loss, model->model().classes());
    own = [python](const host::LogitBlock& block, int32_t* losses) { python->write(block, losses); };
  }
  return std::make_unique<HostTrainer>(std::move(model), options, std::move(layers), batch, threads, std::move(own));
}

py::dict step(HostTrainer& trainer, const py::object& images_object, const py::object& labels_object, uint32_t step,
              float learning_rate) {
  const TrainingSamples checked_samples(images_object, labels_object, trainer.model());
  const host::SampleArray samples = checked_samples.array();
  const StepResult result = without_gil([&] { return trainer.step(step, learning_rate, samples, interrupted); });
  return py::dict("loss"_a = static_cast<double>(result.loss_sum) / loss_one / samples.count,
                  "loss_sum"_a = result.loss_sum, "correct"_a = result.correct, "changed"_a = result.changed);
}

py::tuple estimate(HostTrainer& host, const py::object& images_object, const py::object& labels_object, uint32_t step,
                   int32_t layer_index) {
  const TrainingSamples checked_samples(images_object, labels_object, host.model());
  const host::SampleArray samples = checked_samples.array();
  const auto gradient = without_gil([&] { return host.estimate(step, layer_index, samples, interrupted); });
  return py::make_tuple(copy_array(gradient.weights.data(), {static_cast<py::ssize_t>(gradient.weights.size())}),
                        copy_array(gradient.bias.data(), {static_cast<py::ssize_t>(gradient.bias.size())}));
}

Int64Array losses(HostTrainer& host, const py::object& logits_object, const py::object& labels_object) {
  const auto logits = checked<float>(logits_object, "logits", "float32");
  if (logits.ndim() != 2 || logits.shape(1) != host.model().classes()) {
    throw py::value_error("logits must be (N, " + std::to_string(host.model().classes()) + ") for this model; got " +
                          shape_text(logits));
  }
  const auto labels = checked_labels(labels_object, host.model().classes(), logits.shape(0));
  const host::SampleArray samples = {nullptr, labels.data(), static_cast<int32_t>(logits.shape(0))};
  const auto result = without_gil([&] { return host.losses(logits.data(), samples); });
  return copy_array(result.data(), {logits.shape(0)});
}

FloatArray surprisal(const HostTrainer& host) {
  const std::vector<float> values = host.surprisal();
  return FloatArray(static_cast<py::ssize_t>(values.size()), values.data());
}

void restore_surprisal(HostTrainer& host, const py::object& object) {
  const auto values = checked<float>(object, "values", "float32");
  host.restore_surprisal(values.data(), static_cast<size_t>(values.size()));
}

py::list layer_list(const HostTrainer& host) {
  py::list list;
  for (const Layer& layer : host.layers()) {
    const char* name = host.model().name(host.model().op(layer.op).name);
    list.append(py::dict("op"_a = layer.op, "name"_a = name, "estimator"_a = layer.estimator,
                         "weights"_a = layer.weight_count, "nodes"_a = layer.node_count, "queries"_a = layer.queries,
                         "mu_weight"_a = layer.mu_weight, "mu_node"_a = layer.mu_node));
  }
  return list;
}

// (sum of the fixed-point losses, number of right ones) on the held-out images, for each candidate.
std::vector<std::pair<int64_t, int32_t>> select_layers(const std::shared_ptr<HostModel>& model,
                                                       const TrainerOptions& options,
                                                       const std::vector<std::vector<int32_t>>& candidates,
                                                       const py::object& images_object, const py::object& labels_object,
                                                       const py::object& rates_object,
                                                       const py::object& held_out_images_object,
                                                       const py::object& held_out_labels_object, int32_t threads) {
  const CheckedSamples taught(images_object, labels_object, model->model());
  const auto rates = checked<float>(rates_object, "learning_rates", "float32");
  const CheckedSamples held_out(held_out_images_object, held_out_labels_object, model->model());
  const auto steps = static_cast<int32_t>(rates.size());
  const int32_t count = taught.array().count;
  if (rates.ndim() != 1 || (steps > 0 && count % steps != 0)) {
    throw py::value_error("images must hold the same number for each of the learning_rates; got " +
                          std::to_string(count) + " images and " + std::to_string(steps) + " rates");
  }
  const int32_t batch = steps > 0 ? count / steps : 1;
  const host::TrialData trial = {taught.array(), rates.data(), steps, batch};
  const auto scores = without_gil(
      [&] { return host::select_layers(model, options, candidates, trial, held_out.array(), threads, interrupted); });
  std::vector<std::pair<int64_t, int32_t>> result;
  for (const CandidateScore& score : scores) result.emplace_back(score.loss_sum, score.correct);
  return result;
}

}  // namespace

void register_trainer(py::module_& m) {
  py::class_<HostTrainer>(m, "Trainer", "Trains layers of a model in place, one step at a time.")
      .def(py::init(&make_trainer), py::arg("model"), py::arg("options"), py::arg("layers"), py::arg("batch"),
           py::arg("threads") = 0, py::arg("loss") = py::none())
      .def("step", &step, py::arg("images"), py::arg("labels"), py::arg("step"), py::arg("learning_rate"))
      .def("estimate", &estimate, py::arg("images"), py::arg("labels"), py::arg("step"), py::arg("layer"))
      .def("losses", &losses, py::arg("logits"), py::arg("labels"),
           "The loss of each row of logits, as steps have it, in units of 1 / LOSS_ONE.")
      .def("layers", &layer_list)
      .def("surprisal", &surprisal)
      .def("restore_surprisal", &restore_surprisal, py::arg("values"))
      .def_property_readonly("steps_begun", &HostTrainer::steps_begun)
      .def_property_readonly("arena_bytes", &HostTrainer::arena_bytes)
      .def_property_readonly("threads", &HostTrainer::threads);
  m.def("select_layers", &select_layers, py::arg("model"), py::arg("options"), py::arg("candidates"), py::arg("images"),
        py::arg("labels"), py::arg("learning_rates"), py::arg("held_out_images"), py::arg("held_out_labels"),
        py::arg("threads") = 0);
}

}  // namespace pmt::bindings
