// Checks of arguments: every array is in C order, of an exact dtype, never converted; an op is a layer.
#pragma once

#include <pybind11/numpy.h>

#include <string>
#include <vector>

#include "core/base/arithmetic.hpp"
#include "host/host_trainer.hpp"

namespace pmt::bindings {

namespace py = pybind11;

using Int8Array = py::array_t<int8_t, py::array::c_style>;
using Int32Array = py::array_t<int32_t, py::array::c_style>;
using Int64Array = py::array_t<int64_t, py::array::c_style>;
using FloatArray = py::array_t<float, py::array::c_style>;

// As Python writes a tuple: (3,), (2, 3).
inline std::string shape_text(const std::vector<py::ssize_t>& shape) {
  std::string text;
  for (const py::ssize_t size : shape) text += (text.empty() ? "(" : ", ") + std::to_string(size);
  return text + (shape.empty() ? "()" : shape.size() == 1 ? ",)" : ")");
}

inline std::string shape_text(const py::array& array) {
  return shape_text(std::vector<py::ssize_t>(array.shape(), array.shape() + array.ndim()));
}

template <typename T>
py::array_t<T, py::array::c_style> checked(const py::object& object, const char* name, const char* dtype) {
  if (!py::isinstance<py::array_t<T, py::array::c_style>>(object)) {
    std::string got = "a " + std::string(py::str(py::type::of(object).attr("__name__")));
    if (py::isinstance<py::array>(object)) {
      got = std::string(py::str(object.attr("dtype"))) + " of shape " + shape_text(object.cast<py::array>());
      if (!py::dtype::of<T>().equal(object.attr("dtype"))) {
        throw py::type_error(std::string(name) + " must be a C-contiguous NumPy array of " + dtype + "; got " + got);
      }
      throw py::value_error(std::string(name) + " must be C-contiguous; pass numpy.ascontiguousarray(" + name + ")");
    }
    throw py::type_error(std::string(name) + " must be a C-contiguous NumPy array of " + dtype + "; got " + got);
  }
  return object.cast<py::array_t<T, py::array::c_style>>();
}

inline const OpRecord& layer_record(const Model& model, int32_t op) {
  if (op < 0 || op >= model.op_count() || !has_weights(model.op(op))) {
    throw py::value_error("op " + std::to_string(op) + " is not a layer with weights");
  }
  return model.op(op);
}

// int8 (N, height, width, channels) of the model's input.
inline Int8Array checked_images(const py::object& object, const Model& model) {
  auto images = checked<int8_t>(object, "images", "int8");
  const TensorRecord& in = model.input();
  const bool fits = images.ndim() == 4 && images.shape(1) == in.height && images.shape(2) == in.width &&
                    images.shape(3) == in.channels && images.shape(0) < (1 << 30);
  if (!fits) {
    throw py::value_error("images must have shape (N, " + std::to_string(in.height) + ", " + std::to_string(in.width) +
                          ", " + std::to_string(in.channels) + ") for this model; got " + shape_text(images));
  }
  return images;
}

// uint8 (N, height, width, channels) of the model's input stage.
inline py::array_t<uint8_t, py::array::c_style> checked_frames(const py::object& object, const Model& model) {
  const StageRecord* stage = model.stage();
  auto frames = checked<uint8_t>(object, "frames", "uint8");
  const bool fits = stage != nullptr && frames.ndim() == 4 && frames.shape(1) == stage->height &&
                    frames.shape(2) == stage->width && frames.shape(3) == model.input().channels &&
                    frames.shape(0) < (1 << 30);
  if (!fits) throw py::value_error("frames must be those of the model's input stage; got " + shape_text(frames));
  return frames;
}

// The section of an input stage in an image, with these filters, without the table of pixels.
inline py::bytes stage_section(const StageRecord& frame, const FilterChain& filters) {
  StageRecord stage = frame;
  stage.filters = static_cast<uint32_t>(filters.count);
  std::string section(reinterpret_cast<const char*>(&stage), sizeof stage);
  section.append(reinterpret_cast<const char*>(filters.records), sizeof(FilterRecord) * stage.filters);
  return {section};
}

// int64 (N,), every value `least` or more and a class of the model. A copy, for nobody else may change it while it is
// used.
inline Int64Array checked_labels(const py::object& object, int32_t classes, py::ssize_t count, int64_t least = 0) {
  const auto given = checked<int64_t>(object, "labels", "int64");
  Int64Array labels(std::vector<py::ssize_t>(given.shape(), given.shape() + given.ndim()), given.data());
  if (labels.ndim() != 1 || labels.shape(0) != count) {
    throw py::value_error("labels must have shape (" + std::to_string(count) + ",), one for each image; got " +
                          shape_text(labels));
  }
  for (py::ssize_t i = 0; i < count; ++i) {
    if (labels.at(i) < least || labels.at(i) >= classes) {
      const char* const none = least < 0 ? ", or -1 for none," : "";
      throw py::value_error("labels must be 0.." + std::to_string(classes - 1) + none + " for this model; labels[" +
                            std::to_string(i) + "] is " + std::to_string(labels.at(i)));
    }
  }
  return labels;
}

// Images and their labels, which live as long as this.
struct CheckedSamples {
  CheckedSamples(const py::object& images_object, const py::object& labels_object, const Model& model)
      : images(checked_images(images_object, model)),
        labels(checked_labels(labels_object, model.classes(), images.shape(0))) {}

  host::SampleArray array() const { return {images.data(), labels.data(), static_cast<int32_t>(images.shape(0))}; }

  Int8Array images;
  Int64Array labels;
};

// float32 (N, classes), all finite. A copy.
inline FloatArray checked_targets(const py::object& object, const Model& model, py::ssize_t count) {
  const auto given = checked<float>(object, "labels", "float32");
  FloatArray targets(std::vector<py::ssize_t>(given.shape(), given.shape() + given.ndim()), given.data());
  if (targets.ndim() != 2 || targets.shape(0) != count || targets.shape(1) != model.classes()) {
    throw py::value_error("labels of float32 must have shape (" + std::to_string(count) + ", " +
                          std::to_string(model.classes()) + "), a target for each class; got " + shape_text(targets));
  }
  for (py::ssize_t i = 0; i < targets.size(); ++i) {
    if (!is_finite(targets.data()[i])) throw py::value_error("labels of float32 must be finite numbers");
  }
  return targets;
}

// Images of a training step, with labels (-1: none), targets in their place, or neither (None).
struct TrainingSamples {
  TrainingSamples(const py::object& images_object, const py::object& labels_object, const Model& model)
      : images(checked_images(images_object, model)) {
    if (labels_object.is_none()) return;
    if (py::isinstance<py::array_t<float>>(labels_object)) {
      targets = checked_targets(labels_object, model, images.shape(0));
    } else {
      labels = checked_labels(labels_object, model.classes(), images.shape(0), no_label);
    }
  }

  host::SampleArray array() const {
    return {images.data(), labels.size() > 0 ? labels.data() : nullptr, static_cast<int32_t>(images.shape(0)),
            targets.size() > 0 ? targets.data() : nullptr};
  }

  Int8Array images;
  Int64Array labels;
  FloatArray targets;
};

template <typename T>
py::array_t<T> copy_array(const T* data, std::vector<py::ssize_t> shape) {
  return py::array_t<T>(shape, data);
}

inline py::bytes to_bytes(const std::vector<uint8_t>& data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

// The result of a call that needs no Python object.
template <typename Call>
auto without_gil(const Call& call) {
  const py::gil_scoped_release release;
  return call();
}

// Ctrl-C, asked from the calling thread while the GIL is released.
inline bool interrupted() {
  const py::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

}  // namespace pmt::bindings
