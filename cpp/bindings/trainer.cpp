#include <pybind11/stl.h>

#include "arrays.hpp"
#include "core/loss.hpp"
#include "register.hpp"

namespace pmt::bindings {
namespace {

using host::HostModel;
using host::HostTrainer;

const char* estimator_name(Estimator estimator) {
  switch (estimator) {
    case Estimator::weight_perturbation: return "weight_perturbation";
    case Estimator::node_perturbation: return "node_perturbation";
    default: return "closed_form";
  }
}

py::dict step(HostTrainer& trainer, const py::object& images_object, const py::object& labels_object, uint32_t step,
              float learning_rate) {
  const auto images = checked_images(images_object, trainer.model());
  const auto labels = checked_labels(labels_object, trainer.model(), images.shape(0));
  const host::SampleArray samples = {images.data(), labels.data(), static_cast<int32_t>(images.shape(0))};
  StepResult result = {};
  {
    const py::gil_scoped_release release;
    result = trainer.step(step, learning_rate, samples, interrupted);
  }
  py::dict d;
  d["loss"] = static_cast<double>(result.loss_sum) / loss_one / samples.count;
  d["loss_sum"] = result.loss_sum;
  d["correct"] = result.correct;
  d["changed"] = result.changed;
  return d;
}

// Gradient of the mean loss by the stored integers: weights in the layer's memory order, biases.
py::tuple estimate(HostTrainer& host, const py::object& images_object, const py::object& labels_object, uint32_t step,
                   int32_t layer_index) {
  const auto images = checked_images(images_object, host.model());
  const auto labels = checked_labels(labels_object, host.model(), images.shape(0));
  const host::SampleArray samples = {images.data(), labels.data(), static_cast<int32_t>(images.shape(0))};
  {
    const py::gil_scoped_release release;
    host.estimate(step, layer_index, samples, interrupted);
  }
  const Trainer& trainer = host.trainer();
  const Layer& layer = trainer.layer(layer_index);
  const GradientSums sums = trainer.sums();
  FloatArray weights(layer.weight_count), bias(layer.channels);
  for (int32_t c = 0; c < layer.channels; ++c) {
    const ChannelFactors factors =
        gradient_factors(trainer.estimation(), layer, trainer.update_input(layer, 0.0f, samples.count), c);
    const ChannelWeights at = channel_weights(host.model(), host.model().op(layer.op), c);
    for (int32_t k = 0; k < at.count; ++k) {
      const int32_t i = at.first + k * at.stride;
      weights.mutable_at(i) = sums.weights != nullptr ? static_cast<float>(sums.weights[i]) * factors.weight : 0.0f;
    }
    bias.mutable_at(c) = static_cast<float>(sums.bias[c]) * factors.bias;
  }
  return py::make_tuple(weights, bias);
}

FloatArray memories(const HostTrainer& host) {
  const std::vector<float> values = host.memories();
  return FloatArray(static_cast<py::ssize_t>(values.size()), values.data());
}

void restore_memories(HostTrainer& host, const py::object& object) {
  const auto values = checked<float>(object, "values", "float32");
  host.restore_memories(values.data(), static_cast<size_t>(values.size()));
}

py::list layer_list(const HostTrainer& host) {
  py::list list;
  for (int32_t i = 0; i < host.trainer().layer_count(); ++i) {
    const Layer& layer = host.trainer().layer(i);
    py::dict d;
    d["op"] = layer.op;
    d["name"] = host.model().name(host.model().op(layer.op).name);
    d["estimator"] = estimator_name(layer.estimator);
    d["weights"] = layer.weight_count;
    d["nodes"] = layer.node_count;
    list.append(d);
  }
  return list;
}

}  // namespace

void register_trainer(py::module_& m) {
  py::class_<HostTrainer>(m, "Trainer", "Trains layers of a model in place, one step at a time.")
      .def(py::init<std::shared_ptr<HostModel>, const TrainerOptions&, std::vector<int32_t>, int32_t, int32_t>(),
           py::arg("model"), py::arg("options"), py::arg("layers"), py::arg("batch"), py::arg("threads") = 0)
      .def("step", &step, py::arg("images"), py::arg("labels"), py::arg("step"), py::arg("learning_rate"))
      .def("estimate", &estimate, py::arg("images"), py::arg("labels"), py::arg("step"), py::arg("layer"))
      .def("layers", &layer_list)
      .def("memories", &memories)
      .def("restore_memories", &restore_memories, py::arg("values"))
      .def_property_readonly("steps_begun", [](const HostTrainer& host) { return host.trainer().steps_begun(); })
      .def_property_readonly("arena_bytes", &HostTrainer::arena_bytes)
      .def_property_readonly("threads", &HostTrainer::threads);
}

}  // namespace pmt::bindings
