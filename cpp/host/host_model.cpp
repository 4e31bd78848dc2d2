#include "host/host_model.hpp"

#include <cstring>

#include "core/base/crc32.hpp"
#include "host/kernels/kernel_choice.hpp"

namespace pmt::host {

HostModel::HostModel(const uint8_t* image, size_t bytes) : image_(bytes) {
  std::memcpy(image_.data(), image, bytes);
  check(model_.open(image_.data(), bytes));
  parameters_.resize(static_cast<size_t>(model_.op_count()));
  bind_parameters(model_, parameters_.data());
  network_ = {&model_, &host_kernels(), parameters_.data(), nullptr};
  packed_ = measured_memory([this](Arena& arena) { pack_network(arena, network_); });
  Arena arena = packed_.arena();
  pack_network(arena, network_);
  plan_table_.resize(static_cast<size_t>(Plan::table_size(model_)));
  plan_.make(model_, nullptr, 0, QueryMemory::shared, plan_table_.data());
}

std::vector<uint8_t> HostModel::image() const {
  const Access::Shared use(access_);
  std::vector<uint8_t> copy(image_.data(), image_.data() + image_.bytes());
  const uint32_t checksum = crc32(copy.data() + 16, copy.size() - 16);
  std::memcpy(copy.data() + offsetof(ImageHeader, crc32), &checksum, sizeof checksum);
  return copy;
}

LayerStorage HostModel::storage(int32_t op) {
  const WritableLayer layer = writable_layer(op);
  return {layer.weights, layer.bias};
}

std::vector<LayerStorage> HostModel::storage(const std::vector<int32_t>& layers) {
  std::vector<LayerStorage> all;
  for (const int32_t op : layers) {
    if (op < 0 || op >= model_.op_count() || !has_weights(model_.op(op))) check({Code::layer_not_trainable, op});
    all.push_back(storage(op));
  }
  return all;
}

WritableLayer HostModel::writable_layer(int32_t op) {
  const OpRecord& record = model_.op(op);
  // The image is this object's own memory; Model only promises not to write through its view.
  return {const_cast<int8_t*>(model_.weights(record)), const_cast<int32_t*>(model_.bias(record)),
          const_cast<float*>(model_.weight_scales(record))};
}

}  // namespace pmt::host
