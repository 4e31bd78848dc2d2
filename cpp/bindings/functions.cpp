#include <pybind11/stl.h>

#include <numeric>
#include <tuple>

#include "arrays.hpp"
#include "core/base/crc32.hpp"
#include "core/learn/schedule.hpp"
#include "core/zo/loss.hpp"
#include "core/zo/loss_range.hpp"
#include "core/zo/loss_units.hpp"
#include "core/zo/perturbation.hpp"
#include "core/zo/update.hpp"
#include "host/kernels/kernel_choice.hpp"
#include "host/perturbed_forwards.hpp"
#include "register.hpp"
#include "words.hpp"

namespace pmt::bindings {
namespace {

py::tuple losses(const py::object& logits_object, const py::object& labels_object) {
  const auto logits = checked<float>(logits_object, "logits", "float32");
  const auto labels = checked<int64_t>(labels_object, "labels", "int64");
  if (logits.ndim() != 2 || labels.ndim() != 1 || labels.shape(0) != logits.shape(0)) {
    throw py::value_error("logits must be (N, classes) and labels (N,); got " + shape_text(logits) + " and " +
                          shape_text(labels));
  }
  const auto classes = static_cast<int32_t>(logits.shape(1));
  Int32Array result(logits.shape(0));
  int64_t correct = 0;
  for (py::ssize_t n = 0; n < logits.shape(0); ++n) {
    const int64_t label = labels.at(n);
    if (label < 0 || label >= classes) {
      throw py::value_error("labels must be 0.." + std::to_string(classes - 1) + "; labels[" + std::to_string(n) +
                            "] is " + std::to_string(label));
    }
    result.mutable_at(n) = cross_entropy(logits.data(n, 0), classes, static_cast<int32_t>(label));
    // The largest of NaN logits is not a class.
    correct += arg_max(logits.data(n, 0), classes) == label && result.at(n) < largest_loss;
  }
  return py::make_tuple(result, correct);
}

Int8Array signs(Generator generator, uint32_t seed, uint32_t step, uint32_t layer, uint32_t query, uint32_t sample,
                uint32_t purpose, int32_t count) {
  Int8Array result(count);
  SignStream(generator, {seed, step, layer, query, sample, static_cast<Purpose>(purpose)})
      .next(host::host_kernels(), count, result.mutable_data());
  return result;
}

Int32Array sample_order(uint32_t seed, uint32_t epoch, int32_t count) {
  Int32Array places(count);
  std::iota(places.mutable_data(), places.mutable_data() + count, 0);
  shuffle(seed, epoch, places.mutable_data(), count);
  return places;
}

float rate(float first, float final_fraction, int64_t steps, int64_t step) {
  return learning_rate({first, final_fraction, steps}, step);
}

Int32Array bias_steps(const host::HostModel& host, int32_t op, int32_t mu) {
  const OpRecord& record = layer_record(host.model(), op);
  const int32_t channels = host.model().output_of(record).channels;
  Int32Array result(channels);
  for (int32_t c = 0; c < channels; ++c) result.mutable_at(c) = bias_mu(host.model(), record, c, mu);
  return result;
}

// (weight sums, bias sums, samples, sets of perturbations that the sums ran over).
using Sums = std::tuple<py::object, py::object, int32_t, int32_t>;

py::tuple updated(const host::HostModel& host, const TrainerOptions& options, int32_t op, uint32_t step,
                  float learning_rate, const Sums& sums, const py::object& weights_object,
                  const py::object& bias_object) {
  const auto& [weight_sums_object, bias_sums_object, samples, sets] = sums;
  const auto weight_sums = checked<int64_t>(weight_sums_object, "weight_sums", "int64");
  const auto bias_sums = checked<int64_t>(bias_sums_object, "bias_sums", "int64");
  const auto weights = checked<int8_t>(weights_object, "weights", "int8");
  const auto bias = checked<int32_t>(bias_object, "bias", "int32");
  const OpRecord& record = layer_record(host.model(), op);
  const int32_t count = weight_count(host.model(), record), channels = host.model().output_of(record).channels;
  const bool fits =
      weights.size() == count && weight_sums.size() == count && bias.size() == channels && bias_sums.size() == channels;
  if (!fits || samples < 1 || sets < 1) {
    throw py::value_error("weights, bias and their sums must have the layer's sizes, and samples and sets be positive");
  }
  auto new_weights = copy_array(weights.data(), {weights.shape(), weights.shape() + weights.ndim()});
  auto new_bias = copy_array(bias.data(), {bias.size()});
  // Nothing writes to sums.
  const GradientSums all = {const_cast<int64_t*>(weight_sums.data()), const_cast<int64_t*>(bias_sums.data()), 0,
                            channels};
  host::update_layer(host, options, op, step, {learning_rate, samples, sets}, all,
                     {new_weights.mutable_data(), new_bias.mutable_data()});
  return py::make_tuple(new_weights, new_bias);
}

}  // namespace

void register_functions(py::module_& m) {
  m.attr("LOSS_ONE") = 1 << loss_fraction_bits;
  m.def(
      "cross_entropy", &losses, py::arg("logits"), py::arg("labels"),
      "Losses (N,) in units of 1 / LOSS_ONE, and the number of correct samples. Logits with NaN or +infinity have the "
      "largest loss, 1024, and are not correct.");
  m.def(
      "target_range",
      [](const host::HostModel& host) {
        const TargetRange range = target_range(host.model().output());
        return py::make_tuple(range.low, range.high);
      },
      py::arg("model"), "The least and largest target that squared_error tells apart from all outputs in int8.");
  m.def("signs", &signs, py::arg("generator"), py::arg("seed"), py::arg("step"), py::arg("layer"), py::arg("query"),
        py::arg("sample"), py::arg("purpose"), py::arg("count"), "A stream's first signs, as the trainer draws them.");
  m.def("sample_order", &sample_order, py::arg("seed"), py::arg("epoch"), py::arg("count"),
        "The places 0 to count - 1 as an epoch takes them.");
  m.def("learning_rate", &rate, py::arg("first"), py::arg("final_fraction"), py::arg("steps"), py::arg("step"),
        "The rate of a step, a float32.");
  m.def("round_update", &round_update, py::arg("update"), py::arg("rounding"), py::arg("random"));
  m.def("bias_steps", &bias_steps, py::arg("model"), py::arg("op"), py::arg("mu"),
        "Size of each bias's perturbation, which moves the output as far as mu of the weights; 0 for dead channels.");
  m.def("updated", &updated, py::arg("model"), py::arg("options"), py::arg("op"), py::arg("step"),
        py::arg("learning_rate"), py::arg("sums"), py::arg("weights"), py::arg("bias"),
        "A layer's weights and biases after a step by weight perturbation, of such sums.");
  m.def(
      "crc32",
      [](const py::bytes& bytes) {
        const std::string_view view = bytes;
        return crc32(reinterpret_cast<const uint8_t*>(view.data()), view.size());
      },
      py::arg("bytes"));
}

}  // namespace pmt::bindings
