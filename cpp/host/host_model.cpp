#include "host/host_model.hpp"

#include <cstring>
#include <new>

#include "core/base/crc32.hpp"
#include "host/kernels/kernel_choice.hpp"

namespace pmt::host {
namespace {

constexpr std::align_val_t alignment{64};

}  // namespace

void HostModel::AlignedDelete::operator()(uint8_t* memory) const { ::operator delete(memory, alignment); }

uint8_t* HostModel::allocate(size_t bytes) {
  return static_cast<uint8_t*>(::operator new(bytes > 0 ? bytes : 1, alignment));
}

HostModel::HostModel(const uint8_t* image, size_t bytes) : image_(allocate(bytes)), bytes_(bytes) {
  std::memcpy(image_.get(), image, bytes);
  const Status status = model_.open(image_.get(), bytes);
  if (!status.ok()) throw StatusError{status};
  parameters_.resize(static_cast<size_t>(model_.op_count()));
  bind_parameters(model_, parameters_.data());
  network_ = {&model_, &host_kernels(), parameters_.data(), nullptr};
  Arena measure;
  pack_network(measure, network_);
  packed_.reset(allocate(measure.used()));
  Arena arena(packed_.get(), measure.used());
  pack_network(arena, network_);
  plan_table_.resize(static_cast<size_t>(Plan::table_size(model_)));
  plan_.make(model_, nullptr, 0, QueryMemory::shared, plan_table_.data());
}

std::vector<uint8_t> HostModel::image() const {
  const Access::Shared use(access_);
  std::vector<uint8_t> copy(image_.get(), image_.get() + bytes_);
  const uint32_t checksum = crc32(copy.data() + 16, copy.size() - 16);
  std::memcpy(copy.data() + offsetof(ImageHeader, crc32), &checksum, sizeof checksum);
  return copy;
}

LayerStorage HostModel::storage(int32_t op) {
  const OpRecord& record = model_.op(op);
  // The image is this object's own memory; Model only promises not to write through its view.
  return {const_cast<int8_t*>(model_.weights(record)), const_cast<int32_t*>(model_.bias(record))};
}

AlignedLayer HostModel::aligned_layer(int32_t op) {
  const OpRecord& record = model_.op(op);
  return {const_cast<int8_t*>(model_.weights(record)), const_cast<int32_t*>(model_.bias(record)),
          const_cast<float*>(model_.weight_scales(record))};
}

}  // namespace pmt::host
