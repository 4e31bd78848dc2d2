// What an export of firmware asks for: the parts that it links, and the layout of its card.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <map>
#include <string>
#include <vector>

#include "core/card/card_format.hpp"
#include "core/card/state_slots.hpp"
#include "core/net/segments.hpp"
#include "core/zo/layer.hpp"
#include "host/host_model.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace pmt::bindings {

using namespace py::literals;

namespace {

// Bits of the sets in core/base/linked, by name.
using Parts = std::map<std::string, uint32_t>;

template <typename Part>
void add(uint32_t& parts, Part part) {
  parts |= 1u << static_cast<uint32_t>(part);
}

Parts parts_of_model(const host::HostModel& host) {
  Parts parts = {{"ops", 0}, {"depthwise_sides", 0}};
  for (int32_t i = 0; i < host.model().op_count(); ++i) {
    const OpRecord& op = host.model().op(i);
    add(parts["ops"], op.kind);
    if (op.kind == OpKind::depthwise_conv2d && op.kernel_w < 32) add(parts["depthwise_sides"], op.kernel_w);
  }
  return parts;
}

Parts parts_of_training(const host::HostModel& host, const TrainerOptions& options,
                        const std::vector<int32_t>& layers) {
  Parts parts = {{"losses", 0}, {"generators", 0}, {"estimators", 0}};
  add(parts["losses"], options.loss);
  add(parts["generators"], options.generator);
  for (const int32_t op : layers) add(parts["estimators"], choose_estimator(host.model(), op, options));
  return parts;
}

}  // namespace

void register_export(py::module_& m) {
  m.def("parts_of_model", &parts_of_model, py::arg("model"));
  m.def("parts_of_training", &parts_of_training, py::arg("model"), py::arg("options"), py::arg("layers"));
  // The structs of the card as NumPy types: Python packs and reads them, and knows no layout itself.
  PYBIND11_NUMPY_DTYPE(CardSection, first, bytes);
  PYBIND11_NUMPY_DTYPE(CardHeader, magic, version, blocks, model_crc32, image_bytes, samples, batch, steps, layers, ops,
                       inferences, save_interval, surprisal_values, targets, slot_blocks, first_slot, options,
                       layer_list, streams, step_list, sample_list, activations, results, parameters, surprisal, model);
  PYBIND11_NUMPY_DTYPE(StateHeader, magic, version, identity, generation, tag, bytes, payload_crc32, header_crc32);
  PYBIND11_NUMPY_DTYPE(StepRecord, step, learning_rate, samples);
  PYBIND11_NUMPY_DTYPE(ResultRecord, loss_sum, correct, changed);
  PYBIND11_NUMPY_DTYPE(ParameterRecord, weights_crc32, bias_crc32);
  PYBIND11_NUMPY_DTYPE(StreamedOps, begin, end, band);
  m.attr("CARD_TYPES") =
      py::dict("header"_a = py::dtype::of<CardHeader>(), "slot"_a = py::dtype::of<StateHeader>(),
               "step"_a = py::dtype::of<StepRecord>(), "result"_a = py::dtype::of<ResultRecord>(),
               "parameters"_a = py::dtype::of<ParameterRecord>(), "streams"_a = py::dtype::of<StreamedOps>());
  m.attr("CARD_VERSION") = card_version;
  m.attr("CARD_MAGIC") = py::bytes(reinterpret_cast<const char*>(card_magic), sizeof card_magic);
  m.attr("SLOT_MAGIC") = state_magic;
  m.attr("STATE_WRITE_BYTES") = state_write_bytes;
}

}  // namespace pmt::bindings
