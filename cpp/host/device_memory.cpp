#include "host/device_memory.hpp"

#include <utility>

namespace pmt::host {

DeviceMemory::DeviceMemory(std::shared_ptr<HostModel> model, const TrainerOptions& options,
                           const std::vector<int32_t>& layers, int32_t batch,
                           const std::vector<LayerSettings>& settings, const Kernels& kernels,
                           const std::optional<std::vector<StreamedOps>>& streams)
    : model_(std::move(model)) {
  const Model& view = model_->model();
  const std::vector<LayerStorage> storage(layers.size());
  TrainerSetup setup = {&view,
                        &kernels,
                        &options,
                        layers.data(),
                        static_cast<int32_t>(layers.size()),
                        storage.data(),
                        batch,
                        sequential_executor()};
  setup.compact = true;
  const StreamedOps none = {};
  if (streams.has_value()) {
    setup.streams = streams->empty() ? &none : streams->data();
    setup.stream_count = static_cast<int32_t>(streams->size());
  }
  if (!settings.empty()) {
    if (settings.size() != layers.size()) throw StatusError{{Code::layer_settings}};
    setup.settings = settings.data();
  }
  tables_.resize(Trainer::table_bytes(view, setup.layer_count) / sizeof(Chunk) + 1);
  const Status status = trainer_.open(setup, tables_.data(), tables_.size() * sizeof(Chunk));
  if (!status.ok() && status.code != Code::arena_too_small) throw StatusError{status};
}

}  // namespace pmt::host
