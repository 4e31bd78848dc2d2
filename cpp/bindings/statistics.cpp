#include <memory>

#include "arrays.hpp"
#include "core/arithmetic.hpp"
#include "host/host_statistics.hpp"
#include "register.hpp"

namespace pmt::bindings {
namespace {

using host::HostModel;
using host::HostStatistics;

const OpRecord& layer_record(const HostStatistics& host, int32_t op) {
  const Model& model = host.model();
  if (op < 0 || op >= model.op_count() || !has_weights(model.op(op))) {
    throw py::value_error("op " + std::to_string(op) + " is not a layer with weights");
  }
  return model.op(op);
}

// float32 (2, channels): means, then deviations.
std::vector<ChannelStatistics> checked_statistics(const HostStatistics& host, int32_t op, const py::object& object,
                                                  const char* name) {
  const auto values = checked<float>(object, name, "float32");
  const py::ssize_t channels = host.model().output_of(layer_record(host, op)).channels;
  if (values.ndim() != 2 || values.shape(0) != 2 || values.shape(1) != channels) {
    throw py::value_error(std::string(name) + " must have shape (2, " + std::to_string(channels) +
                          "), means and deviations of the channels; got " + shape_text(values));
  }
  std::vector<ChannelStatistics> statistics;
  for (py::ssize_t c = 0; c < channels; ++c) {
    const ChannelStatistics of_channel = {values.at(0, c), values.at(1, c)};
    if (!is_finite(of_channel.mean) || !is_finite(of_channel.deviation)) {
      throw py::value_error(std::string(name) + " must be finite; channel " + std::to_string(c) + " is not");
    }
    statistics.push_back(of_channel);
  }
  return statistics;
}

FloatArray measure(HostStatistics& host, int32_t op, const py::object& images_object, const py::object& guess_object,
                   int32_t rounds) {
  const auto images = checked_images(images_object, host.model());
  const auto guess = checked_statistics(host, op, guess_object, "guess");
  std::vector<ChannelStatistics> found;
  {
    const int8_t* data = images.data();
    const auto count = static_cast<int32_t>(images.shape(0));
    const py::gil_scoped_release release;
    found = host.measure(op, data, count, rounds, guess, interrupted);
  }
  const auto channels = static_cast<py::ssize_t>(found.size());
  FloatArray result({py::ssize_t{2}, channels});
  for (py::ssize_t c = 0; c < channels; ++c) {
    result.mutable_at(0, c) = found[static_cast<size_t>(c)].mean;
    result.mutable_at(1, c) = found[static_cast<size_t>(c)].deviation;
  }
  return result;
}

void align(HostStatistics& host, int32_t op, const py::object& reference, const py::object& found) {
  host.align(op, checked_statistics(host, op, reference, "reference"), checked_statistics(host, op, found, "found"));
}

}  // namespace

void register_statistics(py::module_& m) {
  py::class_<HostStatistics>(m, "Statistics", "Measures and aligns the channel statistics of a model's layers.")
      .def(py::init<std::shared_ptr<HostModel>, int32_t>(), py::arg("model"), py::arg("threads") = 0)
      .def("measure", &measure, py::arg("op"), py::arg("images"), py::arg("guess"), py::arg("rounds"))
      .def("align", &align, py::arg("op"), py::arg("reference"), py::arg("found"));
}

}  // namespace pmt::bindings
