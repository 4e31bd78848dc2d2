#include "host/device_memory.hpp"

#include <pybind11/stl.h>

#include <array>
#include <optional>

#include "register.hpp"

namespace py = pybind11;

namespace pmt::bindings {

using host::DeviceMemory;
using host::HostModel;
using namespace py::literals;

namespace {

// Bytes of the plan, alive from op `first` to op `last`. The tensor is -1 where they are none's.
struct Buffer {
  const char* what;
  Pass pass;
  int32_t offset, bytes, first, last;
  int32_t tensor = -1;
  bool lines = false;
};

void add(py::list& list, const Buffer& buffer) {
  list.append(py::dict("what"_a = buffer.what, "tensor"_a = buffer.tensor,
                       "pass"_a = buffer.pass == Pass::main ? "main" : "query", "offset"_a = buffer.offset,
                       "bytes"_a = buffer.bytes, "lines"_a = buffer.lines, "first"_a = buffer.first,
                       "last"_a = buffer.last));
}

void add_tensor(py::list& list, const DeviceMemory& memory, Pass pass, int32_t tensor) {
  const Plan& plan = memory.plan();
  const TensorRecord& record = memory.model().tensor(tensor);
  const int32_t bytes = plan.size(tensor);
  int32_t first = 0, last = 0;
  plan.lifetime(tensor, &first, &last);
  add(list, {memory.model().name(record.name), pass, plan.offset(pass, tensor), bytes, first, last, tensor,
             bytes < element_count(record)});
}

void add_scratch(py::list& list, const Plan& plan, Pass pass, int32_t op) {
  if (plan.segment_begin(op) != op || plan.scratch_size(op) == 0) return;
  add(list, {"scratch", pass, plan.scratch_offset(pass, op), plan.scratch_size(op), op, plan.segment_end(op)});
}

py::list main_plan(const DeviceMemory& memory) {
  py::list list;
  for (int32_t t = 0; t < memory.model().tensor_count(); ++t) add_tensor(list, memory, Pass::main, t);
  for (int32_t op = 0; op < memory.model().op_count(); ++op) add_scratch(list, memory.plan(), Pass::main, op);
  return list;
}

// All buffers that are there while a layer is queried.
py::list query_plan(DeviceMemory& memory, int32_t layer) {
  memory.place_queries(layer);
  const Plan& plan = memory.plan();
  py::list list;
  for (int32_t t = 0; t < memory.model().tensor_count(); ++t) {
    if (plan.kept(t, layer)) add_tensor(list, memory, Pass::main, t);
  }
  for (int32_t t = 0; t < memory.model().tensor_count(); ++t) {
    if (plan.offset(Pass::query, t) >= 0) add_tensor(list, memory, Pass::query, t);
  }
  for (int32_t op = plan.query_start(layer); op < memory.model().op_count(); ++op) {
    add_scratch(list, plan, Pass::query, op);
  }
  if (plan.tile_offset() >= 0) {
    add(list, {"perturbed weights", Pass::query, plan.tile_offset(), plan.tile_size(), plan.query_start(layer),
               plan.segment_end(layer)});
  }
  return list;
}

py::list segments(const DeviceMemory& memory) {
  py::list list;
  for (const auto& [first, last, band] : memory.segments()) list.append(py::make_tuple(first, last, band));
  return list;
}

py::dict parts(const DeviceMemory& memory) {
  static constexpr std::array<const char*, memory_part_count> names = {"weights", "biases", "activations", "gradient",
                                                                       "tables",  "lists",  "buffers"};
  const MemoryCount count = memory.parts();
  py::dict d;
  for (size_t i = 0; i < names.size(); ++i) d[names[i]] = count.bytes(static_cast<MemoryPart>(i));
  return d;
}

py::list channel_groups(const DeviceMemory& memory) {
  py::list list;
  for (int32_t i = 0; i < memory.trainer().layer_count(); ++i) {
    list.append(memory.trainer().channels_at_once(memory.trainer().layer(i)));
  }
  return list;
}

// (layer, op); None instead of a layer in the main pass.
py::tuple peak(DeviceMemory& memory, const std::vector<int32_t>& layers) {
  const host::PlanMoment moment = memory.peak(layers);
  return py::make_tuple(moment.layer < 0 ? py::object(py::none()) : py::int_(moment.layer), moment.op);
}

std::unique_ptr<DeviceMemory> device_memory(std::shared_ptr<HostModel> model, const TrainerOptions& options,
                                            std::vector<int32_t> layers, int32_t batch, bool portable,
                                            const std::optional<std::vector<std::array<int32_t, 3>>>& streams) {
  std::optional<std::vector<StreamedOps>> chosen;
  if (streams.has_value()) {
    chosen.emplace();
    for (const auto& [first, last, band] : *streams) chosen->push_back({first, last, band});
  }
  const Kernels& kernels = portable ? portable_kernels() : arm_dsp_kernels();
  return std::make_unique<DeviceMemory>(std::move(model), options, std::move(layers), batch, kernels,
                                        std::move(chosen));
}

}  // namespace

void register_device_memory(py::module_& m) {
  py::class_<DeviceMemory>(m, "DeviceMemory", "What training takes on a device, computed without running anything.")
      .def(py::init(&device_memory), py::arg("model"), py::arg("options"), py::arg("layers"), py::arg("batch"),
           py::kw_only(), py::arg("portable") = false, py::arg("streams") = std::nullopt)
      .def("plan", &main_plan)
      .def("query_plan", &query_plan, py::arg("layer"))
      .def("peak", &peak, py::arg("layers"))
      .def("segments", &segments)
      .def("channels_at_once", &channel_groups)
      .def("parts", &parts)
      .def_property_readonly("activation_bytes", [](const DeviceMemory& memory) { return memory.plan().bytes(); })
      .def_property_readonly("arena_bytes", &DeviceMemory::arena_bytes);
}

}  // namespace pmt::bindings
