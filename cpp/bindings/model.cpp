#include <pybind11/stl.h>

#include <cstring>

#include "arrays.hpp"
#include "core/image/model_checks.hpp"
#include "core/input/input_stage.hpp"
#include "host/inference.hpp"
#include "register.hpp"
#include "words.hpp"

namespace pmt::bindings {
namespace {

using host::Access;
using host::HostModel;
using namespace py::literals;

py::dict op_dict(const Model& model, int32_t index) {
  const OpRecord& op = model.op(index);
  py::list inputs;
  for (const uint32_t tensor : op.input) {
    if (tensor != no_tensor) inputs.append(tensor);
  }
  return py::dict("index"_a = index, "kind"_a = op.kind, "name"_a = model.name(op.name), "inputs"_a = py::tuple(inputs),
                  "output"_a = op.output, "kernel"_a = py::make_tuple(op.kernel_h, op.kernel_w),
                  "stride"_a = py::make_tuple(op.stride_h, op.stride_w),
                  "padding"_a = py::make_tuple(op.pad_top, op.pad_left, op.pad_bottom, op.pad_right),
                  "clamp"_a = py::make_tuple(op.clamp_min, op.clamp_max), "weights"_a = weight_count(model, op),
                  "macs"_a = mac_count(model, op));
}

py::dict tensor_dict(const Model& model, int32_t index) {
  const TensorRecord& t = model.tensor(index);
  return py::dict("index"_a = index, "name"_a = model.name(t.name), "height"_a = t.height, "width"_a = t.width,
                  "channels"_a = t.channels, "scale"_a = t.scale, "zero_point"_a = t.zero_point);
}

py::dict blocks(const Model& model) {
  py::dict d;
  for (int32_t b = 0; b < model.block_count(); ++b) {
    const BlockRecord& block = model.block(b);
    py::list layers;
    for (uint32_t k = 0; k < block.count; ++k) layers.append(model.block_layer(block, k));
    d[model.name(block.name)] = layers;
  }
  return d;
}

py::tuple input_constants(const Model& model, const float* values) {
  const auto channels = static_cast<size_t>(model.input().channels);
  py::tuple result(channels);
  for (size_t c = 0; c < channels; ++c) result[c] = values[c < 4 ? c : 3];
  return result;
}

// conv2d (out, kh, kw, in), depthwise_conv2d (kh, kw, out), fully_connected (out, in).
std::vector<py::ssize_t> weight_shape(const Model& model, const OpRecord& op) {
  const py::ssize_t out = model.output_of(op).channels;
  if (op.kind == OpKind::fully_connected) return {out, element_count(model.input_of(op))};
  if (op.kind == OpKind::depthwise_conv2d) return {op.kernel_h, op.kernel_w, out};
  return {out, op.kernel_h, op.kernel_w, model.input_of(op).channels};
}

// The values of a layer's channels, as a function of the model and the op.
template <typename T>
auto channel_values(const T* (Model::*values)(const OpRecord&) const) {
  return [values](const HostModel& host, int32_t op) {
    const Access::Shared use(host.access());
    const OpRecord& record = layer_record(host.model(), op);
    return copy_array((host.model().*values)(record), {host.model().output_of(record).channels});
  };
}

// For activations of a tensor's shape, one for each image.
Int8Array activation_array(py::ssize_t images, const TensorRecord& t) {
  return Int8Array(std::vector<py::ssize_t>{images, t.height, t.width, t.channels});
}

Int8Array weights(const HostModel& host, int32_t op) {
  const Access::Shared use(host.access());
  const OpRecord& record = layer_record(host.model(), op);
  return copy_array(host.model().weights(record), weight_shape(host.model(), record));
}

void set_parameters(HostModel& host, int32_t op, const py::object& weights_object, const py::object& bias_object) {
  const OpRecord& record = layer_record(host.model(), op);
  const auto new_weights = checked<int8_t>(weights_object, "weights", "int8");
  const auto new_bias = checked<int32_t>(bias_object, "bias", "int32");
  const auto shape = weight_shape(host.model(), record);
  const bool same = static_cast<size_t>(new_weights.ndim()) == shape.size() &&
                    std::equal(shape.begin(), shape.end(), new_weights.shape());
  if (!same || new_bias.ndim() != 1 || new_bias.shape(0) != host.model().output_of(record).channels) {
    throw py::value_error("weights and bias must have the layer's shapes; got " + shape_text(new_weights) + " and " +
                          shape_text(new_bias));
  }
  const Access::Exclusive use(host.access());
  const LayerStorage storage = host.storage(op);
  std::memcpy(storage.weights, new_weights.data(), static_cast<size_t>(new_weights.nbytes()));
  std::memcpy(storage.bias, new_bias.data(), static_cast<size_t>(new_bias.nbytes()));
  host.repack(op);
}

void set_weight_scales(HostModel& host, int32_t op, const py::object& object) {
  const OpRecord& record = layer_record(host.model(), op);
  const auto scales = checked<float>(object, "scales", "float32");
  if (scales.ndim() != 1 || scales.shape(0) != host.model().output_of(record).channels) {
    throw py::value_error("scales must have one value for each channel; got shape " + shape_text(scales));
  }
  for (py::ssize_t c = 0; c < scales.shape(0); ++c) {
    if (!(scales.at(c) >= smallest_weight_scale && scales.at(c) <= largest_scale)) {
      throw py::value_error("scales must be 1e-30 to 1e6; scales[" + std::to_string(c) + "] is " +
                            std::to_string(scales.at(c)));
    }
  }
  const Access::Exclusive use(host.access());
  std::memcpy(host.writable_layer(op).weight_scales, scales.data(), static_cast<size_t>(scales.nbytes()));
  host.rescale(op);
}

FloatArray logits(const HostModel& host, const py::object& object, int32_t threads, bool int8_logits) {
  const auto images = checked_images(object, host.model());
  FloatArray result({images.shape(0), static_cast<py::ssize_t>(host.model().classes())});
  const auto count = static_cast<int32_t>(images.shape(0));
  const py::gil_scoped_release release;
  host::batch_logits(host, images.data(), count, int8_logits, threads, interrupted, result.mutable_data());
  return result;
}

Int8Array inputs(const HostModel& host, const py::object& object, int32_t op, int32_t threads) {
  const Model& model = host.model();
  if (op < 0 || op >= model.op_count()) {
    throw py::value_error("op " + std::to_string(op) + " must be 0.." + std::to_string(model.op_count() - 1));
  }
  const auto images = checked_images(object, model);
  Int8Array result = activation_array(images.shape(0), model.input_of(model.op(op)));
  const auto count = static_cast<int32_t>(images.shape(0));
  const py::gil_scoped_release release;
  host::batch_inputs(host, images.data(), count, op, threads, interrupted, result.mutable_data());
  return result;
}

// Height and width of the frames that the input stage reads; None without one.
py::object frame_size(const HostModel& host) {
  const StageRecord* stage = host.model().stage();
  if (stage == nullptr) return py::none();
  return py::make_tuple(stage->height, stage->width);
}

// The section of the input stage; empty without one.
py::bytes stage_bytes(const HostModel& host) {
  return {reinterpret_cast<const char*>(host.model().stage()), host.model().header().stage.count};
}

Int8Array run_stage(const HostModel& host, const py::object& object, int32_t threads) {
  const auto frames = checked_frames(object, host.model());
  Int8Array result = activation_array(frames.shape(0), host.model().input());
  const auto count = static_cast<int32_t>(frames.shape(0));
  const py::gil_scoped_release release;
  host::batch_input_stage(host, frames.data(), count, threads, interrupted, result.mutable_data());
  return result;
}

py::list activations(const HostModel& host, const py::object& object) {
  const auto image = checked<int8_t>(object, "image", "int8");
  const Model& model = host.model();
  if (image.ndim() != 3 || image.size() != element_count(model.input())) {
    throw py::value_error("image must have the model's input shape; got " + shape_text(image));
  }
  const auto tensors = host::activations(host, image.data());
  py::list result;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorRecord& t = model.tensor(static_cast<int32_t>(i));
    result.append(copy_array(tensors[i].data(), {t.height, t.width, t.channels}));
  }
  return result;
}

std::shared_ptr<HostModel> make_model(const py::bytes& image) {
  const std::string_view view = image;
  return std::make_shared<HostModel>(reinterpret_cast<const uint8_t*>(view.data()), view.size());
}

void register_limits(py::module_& m) {
  m.attr("LARGEST_WEIGHT") = largest_weight;
  m.attr("DEAD_CHANNEL_SCALE") = dead_channel_scale;
  m.attr("TENSOR_SCALES") = py::make_tuple(smallest_tensor_scale, largest_scale);
  m.attr("WEIGHT_SCALES") = py::make_tuple(smallest_weight_scale, largest_scale);
  m.attr("MOST_TENSORS") = most_tensors;
  m.attr("MOST_OPS") = most_ops;
  m.attr("LARGEST_SIDE") = largest_side;
  m.attr("MOST_CHANNELS") = most_channels;
  m.attr("MOST_ACTIVATIONS") = most_activations;
  m.attr("MOST_FILTERS") = most_filters;
  m.attr("MOST_STAGE_CHANNELS") = most_stage_channels;
  m.attr("SHRINKAGE_BLOCK") = shrinkage_block;
  m.attr("NOISE_MODELS") = split(words<NoiseModel>);
  const py::tuple kinds = split(words<FilterKind>);
  py::dict strengths;
  for (uint32_t i = 1; i < words<FilterKind>.count; ++i) {  // 0 is none
    const StrengthRange range = strength_range(static_cast<FilterKind>(i));
    strengths[kinds[i]] = py::make_tuple(range.low, range.high);
  }
  m.attr("FILTER_STRENGTHS") = strengths;
}

}  // namespace

void register_model(py::module_& m) {
  register_limits(m);
  py::class_<HostModel, std::shared_ptr<HostModel>>(m, "Model", "A validated .pmt image with writable weights.")
      .def(py::init(&make_model), py::arg("image"))
      .def(
          "image", [](const HostModel& h) { return to_bytes(h.image()); }, "The image with its present weights.")
      .def_property_readonly("op_count", [](const HostModel& h) { return h.model().op_count(); })
      .def_property_readonly("classes", [](const HostModel& h) { return h.model().classes(); })
      .def_property_readonly("input_shape",
                             [](const HostModel& h) {
                               const TensorRecord& t = h.model().input();
                               return py::make_tuple(t.height, t.width, t.channels);
                             })
      .def_property_readonly("input_tensor", [](const HostModel& h) { return h.model().header().input_tensor; })
      .def_property_readonly("output_tensor", [](const HostModel& h) { return h.model().header().output_tensor; })
      .def_property_readonly(
          "input_mean", [](const HostModel& h) { return input_constants(h.model(), h.model().header().input_mean); })
      .def_property_readonly(
          "input_std", [](const HostModel& h) { return input_constants(h.model(), h.model().header().input_std); })
      .def_property_readonly("has_linear_head", [](const HostModel& h) { return has_linear_head(h.model()); })
      .def("ops",
           [](const HostModel& h) {
             py::list list;
             for (int32_t i = 0; i < h.model().op_count(); ++i) list.append(op_dict(h.model(), i));
             return list;
           })
      .def("tensors",
           [](const HostModel& h) {
             py::list list;
             for (int32_t i = 0; i < h.model().tensor_count(); ++i) list.append(tensor_dict(h.model(), i));
             return list;
           })
      .def("blocks", [](const HostModel& h) { return blocks(h.model()); })
      .def("metadata",
           [](const HostModel& h) { return std::string(h.model().metadata(), h.model().header().metadata.count); })
      .def("weights", &weights, py::arg("op"))
      .def("bias", channel_values(&Model::bias), py::arg("op"))
      .def("weight_scales", channel_values(&Model::weight_scales), py::arg("op"))
      .def("set_parameters", &set_parameters, py::arg("op"), py::arg("weights"), py::arg("bias"))
      .def("set_weight_scales", &set_weight_scales, py::arg("op"), py::arg("scales"))
      .def("logits", &logits, py::arg("images"), py::arg("threads") = 0, py::arg("int8_logits") = false)
      .def("inputs", &inputs, py::arg("images"), py::arg("op"), py::arg("threads") = 0)
      .def_property_readonly("frame_size", &frame_size)
      .def("stage", &stage_bytes)
      .def("run_stage", &run_stage, py::arg("frames"), py::arg("threads") = 0)
      .def("activations", &activations, py::arg("image"));
}

}  // namespace pmt::bindings
