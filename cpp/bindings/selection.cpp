#include <pybind11/stl.h>

#include "arrays.hpp"
#include "host/host_selection.hpp"
#include "register.hpp"

namespace pmt::bindings {
namespace {

using host::HostModel;

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

void register_selection(py::module_& m) {
  m.def("select_layers", &select_layers, py::arg("model"), py::arg("options"), py::arg("candidates"), py::arg("images"),
        py::arg("labels"), py::arg("learning_rates"), py::arg("held_out_images"), py::arg("held_out_labels"),
        py::arg("threads") = 0);
}

}  // namespace pmt::bindings
