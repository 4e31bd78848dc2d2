#include "core/card/card_format.hpp"

#include <pybind11/numpy.h>

#include "core/card/state_slots.hpp"
#include "core/net/segments.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace pmt::bindings {

using namespace py::literals;

// The structs of the card as NumPy types: Python packs and reads them, and knows no layout itself.
void register_card_format(py::module_& m) {
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
