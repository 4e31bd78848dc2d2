#include <pybind11/stl.h>

#include "arrays.hpp"
#include "core/base/crc32.hpp"
#include "core/zo/loss.hpp"
#include "core/zo/perturbation.hpp"
#include "core/zo/update.hpp"
#include "host/kernels/kernel_choice.hpp"
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
    // The largest of NaN logits is no class.
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

Int32Array add_signs(const py::object& signs_object, int32_t factor, const py::object& sum_object) {
  const auto signs = checked<int8_t>(signs_object, "signs", "int8");
  const auto sum = checked<int32_t>(sum_object, "sum", "int32");
  if (signs.ndim() != 1 || sum.ndim() != 1 || signs.size() != sum.size()) {
    throw py::value_error("signs and sum must be (n,); got " + shape_text(signs) + " and " + shape_text(sum));
  }
  Int32Array result = copy_array(sum.data(), {sum.size()});
  host::host_kernels().accumulate_signs(signs.data(), static_cast<int32_t>(signs.size()), factor,
                                        result.mutable_data());
  return result;
}

}  // namespace

void register_functions(py::module_& m) {
  m.attr("LOSS_ONE") = 1 << loss_fraction_bits;
  m.def(
      "cross_entropy", &losses, py::arg("logits"), py::arg("labels"),
      "Losses (N,) in units of 1 / LOSS_ONE, and the number of correct samples. Logits with NaN or +infinity have the "
      "largest loss, 1024, and are not correct.");
  m.def("signs", &signs, py::arg("generator"), py::arg("seed"), py::arg("step"), py::arg("layer"), py::arg("query"),
        py::arg("sample"), py::arg("purpose"), py::arg("count"), "A stream's first signs, as the trainer draws them.");
  m.def("accumulate_signs", &add_signs, py::arg("signs"), py::arg("factor"), py::arg("sum"),
        "sum + factor * signs, the step by which a gradient is built.");
  m.def("round_update", &round_update, py::arg("update"), py::arg("rounding"), py::arg("random"));
  m.def(
      "crc32",
      [](const py::bytes& bytes) {
        const std::string_view view = bytes;
        return crc32(reinterpret_cast<const uint8_t*>(view.data()), view.size());
      },
      py::arg("bytes"));
}

}  // namespace pmt::bindings
