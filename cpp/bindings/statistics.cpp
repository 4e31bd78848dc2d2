#include <memory>

#include "arrays.hpp"
#include "core/align/image_noise.hpp"
#include "core/align/shrinkage.hpp"
#include "core/base/arithmetic.hpp"
#include "host/host_statistics.hpp"
#include "register.hpp"

namespace pmt::bindings {
namespace {

using host::HostModel;
using host::HostStatistics;

// The images live as long as what looks at them.
struct Statistics {
  Int8Array images;
  HostStatistics host;
};

std::unique_ptr<Statistics> make_statistics(const std::shared_ptr<HostModel>& model, const py::object& object,
                                            int32_t threads) {
  const auto images = checked_images(object, model->model());
  return std::unique_ptr<Statistics>(
      new Statistics{images, {model, images.data(), static_cast<int32_t>(images.shape(0)), threads}});
}

// float32 (2, channels) of two members of each channel's.
template <typename Channel>
FloatArray to_rows(const std::vector<Channel>& channels, float Channel::*first, float Channel::*second) {
  FloatArray result({py::ssize_t{2}, static_cast<py::ssize_t>(channels.size())});
  for (py::ssize_t c = 0; c < result.shape(1); ++c) {
    result.mutable_at(0, c) = channels[static_cast<size_t>(c)].*first;
    result.mutable_at(1, c) = channels[static_cast<size_t>(c)].*second;
  }
  return result;
}

FloatArray to_rows(const std::vector<ChannelStatistics>& found) {
  return to_rows(found, &ChannelStatistics::mean, &ChannelStatistics::deviation);
}

// float32 (2, channels): means, then deviations.
std::vector<ChannelStatistics> checked_statistics(const Model& model, int32_t op, const py::object& object,
                                                  const char* name) {
  const auto values = checked<float>(object, name, "float32");
  const py::ssize_t channels = model.output_of(layer_record(model, op)).channels;
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

FloatArray measure(Statistics& statistics, int32_t op, const py::object& guess_object, int32_t rounds) {
  HostStatistics& host = statistics.host;
  const auto guess = checked_statistics(host.model(), op, guess_object, "guess");
  return to_rows(without_gil([&] { return host.measure(op, rounds, guess, interrupted); }));
}

void align(Statistics& statistics, int32_t op, const py::object& reference, const py::object& found) {
  const Model& model = statistics.host.model();
  statistics.host.align(op, checked_statistics(model, op, reference, "reference"),
                        checked_statistics(model, op, found, "found"));
}

WindowGroups groups_of(const Model& model, int32_t op) {
  layer_record(model, op);
  return window_groups(model, op);
}

// (groups, values of a group); (0, 0) of a layer without windows.
py::tuple window_shape(const HostModel& host, int32_t op) {
  const WindowGroups groups = groups_of(host.model(), op);
  return py::make_tuple(groups.count, groups.count == 0 ? 0 : groups.values());
}

std::vector<float> checked_values(const py::object& object, const std::vector<py::ssize_t>& shape,
                                  const std::string& name) {
  const auto values = checked<float>(object, name.c_str(), "float32");
  if (std::vector<py::ssize_t>(values.shape(), values.shape() + values.ndim()) != shape) {
    throw py::value_error(name + " must have shape " + shape_text(shape) + "; got " + shape_text(values));
  }
  std::vector<float> result(values.data(), values.data() + values.size());
  for (const float value : result) {
    if (!is_finite(value)) throw py::value_error(name + " must be finite");
  }
  return result;
}

WindowGroups checked_groups(const HostStatistics& host, int32_t op) {
  const WindowGroups groups = groups_of(host.model(), op);
  if (groups.count == 0) throw py::value_error("op " + std::to_string(op) + " has no windows to look at");
  return groups;
}

py::ssize_t input_channels(const HostStatistics& host, int32_t op) {
  return host.model().input_of(host.model().op(op)).channels;
}

HostStatistics::Windows checked_windows(const HostStatistics& host, int32_t op, const WindowGroups& groups,
                                        const py::tuple& windows, const std::string& name) {
  if (windows.size() != 2) throw py::value_error(name + " must be means and values");
  return {checked_values(windows[0], {input_channels(host, op)}, name + " means"),
          checked_values(windows[1], {groups.count, groups.values()}, name + " values")};
}

py::tuple measure_windows(Statistics& statistics, int32_t op, const py::object& centers_object) {
  HostStatistics& host = statistics.host;
  const WindowGroups groups = checked_groups(host, op);
  const std::vector<float> centers = checked_values(centers_object, {input_channels(host, op)}, "centers");
  const auto found = without_gil([&] { return host.measure_windows(op, centers, interrupted); });
  return py::make_tuple(copy_array(found.means.data(), {input_channels(host, op)}),
                        copy_array(found.values.data(), {groups.count, groups.values()}));
}

void align_covariances(Statistics& statistics, int32_t op, const py::tuple& reference, const py::tuple& found) {
  HostStatistics& host = statistics.host;
  const WindowGroups groups = checked_groups(host, op);
  const HostStatistics::Windows wanted = checked_windows(host, op, groups, reference, "reference");
  const HostStatistics::Windows measured = checked_windows(host, op, groups, found, "found");
  const py::gil_scoped_release release;
  host.align_covariances(op, wanted, measured);
}

const OpRecord& mixing_layer(const Model& model, int32_t op) {
  layer_record(model, op);
  if (!pmt::mixes_channels(model, op)) {
    throw py::value_error("op " + std::to_string(op) + " does not mix channels that other layers made");
  }
  return model.op(op);
}

bool mixes_channels(const HostModel& host, int32_t op) {
  layer_record(host.model(), op);
  return pmt::mixes_channels(host.model(), op);
}

// float32 (2, input channels): means, then correlations.
FloatArray measure_reliability(Statistics& statistics, int32_t op) {
  HostStatistics& host = statistics.host;
  mixing_layer(host.model(), op);
  if (statistics.images.shape(0) % 2 != 0) {
    throw py::value_error("images must be pairs, one and the same disturbed; got " +
                          std::to_string(statistics.images.shape(0)));
  }
  return to_rows(without_gil([&] { return host.measure_reliability(op, interrupted); }), &ChannelReliability::mean,
                 &ChannelReliability::correlation);
}

void weigh_channels(Statistics& statistics, int32_t op, const py::object& object, float strength) {
  HostStatistics& host = statistics.host;
  const py::ssize_t channels = host.model().input_of(mixing_layer(host.model(), op)).channels;
  if (!(strength >= 0.0f && strength <= 1.0f)) {
    throw py::value_error("strength must be 0..1, got " + std::to_string(strength));
  }
  const std::vector<float> values = checked_values(object, {2, channels}, "reliability");
  std::vector<ChannelReliability> found;
  for (size_t c = 0; c < values.size() / 2; ++c) {
    found.push_back({values[c], values[values.size() / 2 + c]});
    if (!(found[c].correlation >= 0.0f && found[c].correlation <= 1.0f)) {
      throw py::value_error("reliability must have correlations 0..1; that of channel " + std::to_string(c) + " is " +
                            std::to_string(found[c].correlation));
    }
  }
  const py::gil_scoped_release release;
  host.weigh_channels(op, found, strength);
}

// One count of images for each group of them.
std::vector<int32_t> checked_counts(const py::object& object, py::ssize_t groups) {
  const auto counts = checked<int32_t>(object, "images", "int32");
  if (groups < 1 || counts.ndim() != 1 || counts.shape(0) != groups) {
    throw py::value_error("images must have shape (" + std::to_string(groups) + ",), one count for each group; got " +
                          shape_text(counts));
  }
  int64_t sum = 0;
  for (py::ssize_t g = 0; g < groups; ++g) {
    if (counts.at(g) < 1) throw py::value_error("images must be counts of 1 or more");
    sum += counts.at(g);
  }
  if (sum > INT32_MAX) throw py::value_error("images must be counts below 2^31 in all, got " + std::to_string(sum));
  return {counts.data(), counts.data() + groups};
}

// float32 (2, channels) of float32 (groups, 2, channels).
FloatArray shrink_channels(const py::object& reference_object, const py::object& found_object,
                           const py::object& images) {
  const auto found = checked<float>(found_object, "found", "float32");
  const py::ssize_t groups = found.ndim() == 3 ? found.shape(0) : 0;
  const py::ssize_t channels = groups > 0 ? found.shape(2) : 0;
  if (channels < 1 || found.shape(1) != 2) {
    throw py::value_error("found must have shape (groups, 2, channels); got " + shape_text(found));
  }
  const std::vector<int32_t> counts = checked_counts(images, groups);
  const auto pairs = [channels](const float* means) {
    std::vector<ChannelStatistics> statistics;
    for (py::ssize_t c = 0; c < channels; ++c) statistics.push_back({means[c], means[channels + c]});
    return statistics;
  };
  const auto reference = pairs(checked_values(reference_object, {2, channels}, "reference").data());
  std::vector<ChannelStatistics> all;
  for (py::ssize_t g = 0; g < groups; ++g) {
    const auto of_group = pairs(found.data() + g * 2 * channels);
    all.insert(all.end(), of_group.begin(), of_group.end());
  }
  std::vector<ChannelStatistics> shrunk(static_cast<size_t>(channels));
  pmt::shrink_channels(static_cast<int32_t>(channels), reference.data(), {static_cast<int32_t>(groups), counts.data()},
                       all.data(), shrunk.data());
  return to_rows(shrunk);
}

// float32 (groups of channels, values) of float32 (groups of images, groups of channels, values).
FloatArray shrink_windows(const HostModel& host, int32_t op, const py::object& reference_object,
                          const py::object& found_object, const py::object& images) {
  const WindowGroups windows = groups_of(host.model(), op);
  const auto given = checked<float>(found_object, "found", "float32");
  const py::ssize_t groups = given.ndim() == 3 ? given.shape(0) : 0;
  const std::vector<int32_t> counts = checked_counts(images, groups);
  const auto reference = checked_values(reference_object, {windows.count, windows.values()}, "reference values");
  const auto found = checked_values(found_object, {groups, windows.count, windows.values()}, "found values");
  FloatArray result({py::ssize_t{windows.count}, py::ssize_t{windows.values()}});
  std::vector<float> squares(reference.size());
  WindowScatter scatter;
  scatter.begin(result.mutable_data(), squares.data(), static_cast<int32_t>(result.size()));
  for (size_t g = 0; g < counts.size(); ++g) {
    const float* const values = found.data() + g * reference.size();
    scatter.add(counts[g], [values](int32_t i) { return values[i]; });
  }
  pmt::shrink_windows(windows, reference.data(), scatter);
  return result;
}

// The strength that the values of a layer tell, `found` float32 (groups of images, groups of channels, values).
float reliability_strength(const HostModel& host, int32_t op, const py::object& clean_object,
                           const py::object& found_object) {
  const WindowGroups windows = groups_of(host.model(), op);
  const auto given = checked<float>(found_object, "found", "float32");
  const py::ssize_t groups = given.ndim() == 3 ? given.shape(0) : 0;
  const auto clean = checked_values(clean_object, {windows.count, windows.values()}, "clean values");
  const auto found = checked_values(found_object, {groups, windows.count, windows.values()}, "found values");
  std::vector<float> shares;
  for (py::ssize_t g = 0; g < groups; ++g) {
    shares.push_back(pmt::noise_share(windows, clean.data(), found.data() + g * windows.count * windows.values()));
  }
  return pmt::reliability_strength(shares.data(), static_cast<int32_t>(groups));
}

// int8 (2 N, height, width, channels): every image, and behind it the same with the details of the next one.
Int8Array noise_probes(const HostModel& host, const py::object& object) {
  const auto images = checked_images(object, host.model());
  const TensorRecord& shape = host.model().input();
  const py::ssize_t count = images.shape(0), size = element_count(shape);
  Int8Array pairs({2 * count, images.shape(1), images.shape(2), images.shape(3)});
  std::vector<int32_t> sums(static_cast<size_t>(noise_probe_sums(shape)));
  const int8_t* const first = images.data();
  int8_t* const probes = pairs.mutable_data();
  const py::gil_scoped_release release;
  for (py::ssize_t i = 0; i < count; ++i) {
    const int8_t* const image = first + i * size;
    int8_t* const pair = probes + 2 * i * size;
    std::copy(image, image + size, pair);
    add_noise_probe(shape, image, first + (i + 1) % count * size, sums.data(), pair + size);
  }
  return pairs;
}

}  // namespace

void register_statistics(py::module_& m) {
  py::class_<Statistics>(m, "Statistics", "Measures and aligns a model's layers on images, from the first on.")
      .def(py::init(&make_statistics), py::arg("model"), py::arg("images"), py::arg("threads") = 0)
      .def("measure", &measure, py::arg("op"), py::arg("guess"), py::arg("rounds"))
      .def("align", &align, py::arg("op"), py::arg("reference"), py::arg("found"))
      .def("measure_windows", &measure_windows, py::arg("op"), py::arg("centers"))
      .def("align_covariances", &align_covariances, py::arg("op"), py::arg("reference"), py::arg("found"))
      .def("measure_reliability", &measure_reliability, py::arg("op"))
      .def("weigh_channels", &weigh_channels, py::arg("op"), py::arg("reliability"), py::arg("strength"));
  m.attr("IMAGE_GROUPS") = ImageGroups::usual;
  m.def("shrink_channels", &shrink_channels, py::arg("reference"), py::arg("found"), py::arg("images"));
  m.def("shrink_windows", &shrink_windows, py::arg("model"), py::arg("op"), py::arg("reference"), py::arg("found"),
        py::arg("images"));
  m.def("reliability_strength", &reliability_strength, py::arg("model"), py::arg("op"), py::arg("clean"),
        py::arg("found"));
  m.def(
      "probed_images", [](const HostModel& host, int32_t images) { return pmt::probed_images(host.model(), images); },
      py::arg("model"), py::arg("images"));
  m.def("noise_probes", &noise_probes, py::arg("model"), py::arg("images"));
  m.def("window_shape", &window_shape, py::arg("model"), py::arg("op"));
  m.def("mixes_channels", &mixes_channels, py::arg("model"), py::arg("op"));
}

}  // namespace pmt::bindings
