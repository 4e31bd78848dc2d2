#include "host/perturbed_forwards.hpp"

#include <algorithm>

#include "arrays.hpp"
#include "register.hpp"

namespace pmt::bindings {
namespace {

using host::HostModel;
using host::QueryValues;

std::string sizes_text(const std::vector<py::ssize_t>& sizes) {
  std::string text;
  for (const py::ssize_t size : sizes) text += (text.empty() ? "" : " or ") + std::to_string(size);
  return text;
}

// (queries, samples or 1, one of the sizes); nothing of None. `queries` is 0 or the number that an array before it has.
template <typename T>
QueryValues<T> query_values(const py::array_t<T, py::array::c_style>& values, const char* name, py::ssize_t samples,
                            const std::vector<py::ssize_t>& sizes, py::ssize_t& queries) {
  const bool fits = values.ndim() == 3 && (queries == 0 || values.shape(0) == queries) &&
                    (values.shape(1) == 1 || values.shape(1) == samples) &&
                    std::find(sizes.begin(), sizes.end(), values.shape(2)) != sizes.end() &&
                    values.shape(0) < (1 << 30);
  if (!fits) {
    throw py::value_error(std::string(name) + " must be (queries, 1 or " + std::to_string(samples) + ", " +
                          sizes_text(sizes) + "), with as many queries as others; got " + shape_text(values));
  }
  queries = values.shape(0);
  const int64_t size = values.shape(2), rows = values.shape(1);
  return {values.data(), size * rows, rows == 1 ? 0 : size};
}

FloatArray perturbed_logits(const HostModel& host, const py::object& images_object, int32_t op,
                            const py::object& weights_object, const py::object& bias_object,
                            const py::object& nodes_object, int32_t threads, bool int8_logits) {
  const Model& model = host.model();
  const OpRecord& record = layer_record(model, op);
  const auto images = checked_images(images_object, model);
  const py::ssize_t samples = images.shape(0), channels = model.output_of(record).channels;
  if (!nodes_object.is_none() && !(weights_object.is_none() && bias_object.is_none())) {
    throw py::value_error("nodes are perturbed alone, without weights and bias");
  }
  host::LayerPerturbation perturbation = {op, 0, {}, {}, {}, false};
  py::ssize_t queries = 0;
  Int8Array weights, nodes;
  Int32Array bias;
  if (!weights_object.is_none()) {
    weights = checked<int8_t>(weights_object, "weights", "int8");
    perturbation.weights = query_values(weights, "weights", samples, {weight_count(model, record)}, queries);
  }
  if (!bias_object.is_none()) {
    bias = checked<int32_t>(bias_object, "bias", "int32");
    perturbation.bias = query_values(bias, "bias", samples, {channels}, queries);
  }
  if (!nodes_object.is_none()) {
    nodes = checked<int8_t>(nodes_object, "nodes", "int8");
    perturbation.nodes =
        query_values(nodes, "nodes", samples, {channels, element_count(model.output_of(record))}, queries);
    perturbation.one_per_channel = nodes.shape(2) == channels;
  }
  perturbation.queries = static_cast<int32_t>(queries);
  FloatArray result({queries, samples, static_cast<py::ssize_t>(model.classes())});
  const host::SampleArray array = {images.data(), nullptr, static_cast<int32_t>(samples)};
  float* out = result.mutable_data();
  const py::gil_scoped_release release;
  host::perturbed_logits(host, perturbation, array, int8_logits, threads, interrupted, out);
  return result;
}

}  // namespace

void register_perturbed_forwards(py::module_& m) {
  m.def("perturbed_logits", &perturbed_logits, py::arg("model"), py::arg("images"), py::arg("op"),
        py::arg("weights") = py::none(), py::arg("bias") = py::none(), py::arg("nodes") = py::none(),
        py::arg("threads") = 0, py::arg("int8_logits") = false,
        "Logits (queries, samples, classes) with a layer perturbed by integers (queries, samples or 1, elements).");
}

}  // namespace pmt::bindings
