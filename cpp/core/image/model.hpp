// A view on a .pmt image. open() checks everything once; afterwards no access can leave the image.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/linked/input_stage.hpp"
#include "core/base/memory_parts.hpp"
#include "core/base/status.hpp"
#include "core/image/image_format.hpp"
#include "core/ops/op.hpp"

namespace pmt {

// Weight scales below this mark a dead channel: its weights cannot reach the output, and
// 1 / scale^2 would explode in the update. Such channels are frozen.
constexpr float dead_channel_scale = 1e-6f;

constexpr int32_t largest_weight = 127;  // weights are symmetric

// Scales outside these bounds are refused: inside them no product of scales and accumulators can
// overflow a float or become a NaN.
constexpr float smallest_tensor_scale = 1e-12f;
constexpr float smallest_weight_scale = 1e-30f;
constexpr float largest_scale = 1e6f;

// All tensors of a network together, in elements: every offset of a plan fits int32.
constexpr int64_t most_activations = int64_t{1} << 28;

// Sizes beyond these are refused: arithmetic on them stays inside int32, planning inside seconds.
constexpr uint32_t largest_image = 1u << 28;
constexpr uint32_t most_ops = 1024;
constexpr uint32_t most_tensors = 2048;
constexpr int32_t most_channels = 65536;

// The parameters of a layer, where they may be written.
struct WritableLayer {
  int8_t* weights;
  int32_t* bias;
  float* weight_scales;
};
template <>
inline constexpr size_t size_on_device<WritableLayer> = 12;

// Filters of an input stage, one after another.
struct FilterChain {
  FilterRecord records[most_filters];
  int32_t count;
};
bool operator==(const FilterChain& a, const FilterChain& b);

class Model {
 public:
  // `image` must be 16-byte aligned and outlive the view.
  Status open(const uint8_t* image, size_t bytes);
  // Parameters that stand in for the image's, one entry an op, and filters, which outlive the view; a null pointer: the
  // image's own. What holds pointers of its own, as a network does, binds them anew.
  void overlay(const WritableLayer* layers, const FilterChain* filters = nullptr) {
    overlay_ = layers;
    filters_ = filters;
  }
  // The same with the image's own.
  Model original() const {
    Model copy = *this;
    copy.overlay(nullptr);
    return copy;
  }

  const ImageHeader& header() const { return *header_; }
  int32_t tensor_count() const { return static_cast<int32_t>(header_->tensors.count); }
  int32_t op_count() const { return static_cast<int32_t>(header_->ops.count); }
  const TensorRecord& tensor(int32_t index) const { return tensors_[index]; }
  const OpRecord& op(int32_t index) const { return ops_[index]; }
  OpTensors tensors_of(const OpRecord& op) const {
    return {op, {&input_of(op), op.input[1] == no_tensor ? nullptr : &input_of(op, 1)}, output_of(op)};
  }
  const TensorRecord& input_of(const OpRecord& op, int which = 0) const { return tensors_[op.input[which]]; }
  const TensorRecord& output_of(const OpRecord& op) const { return tensors_[op.output]; }
  const TensorRecord& input() const { return tensors_[header_->input_tensor]; }
  const TensorRecord& output() const { return tensors_[header_->output_tensor]; }
  int32_t classes() const;

  const int8_t* weights(const OpRecord& op) const;
  const int32_t* bias(const OpRecord& op) const;
  const float* weight_scales(const OpRecord& op) const;
  const char* name(uint32_t offset) const;

  int32_t block_count() const { return static_cast<int32_t>(header_->blocks.count); }
  const BlockRecord& block(int32_t index) const;
  int32_t block_layer(const BlockRecord& block, uint32_t index) const;
  const char* metadata() const;

  // The input stage; a null pointer without one.
  const StageRecord* stage() const {
    if (!linked::input_stage || header_->stage.count == 0) return nullptr;
    return reinterpret_cast<const StageRecord*>(image_ + header_->stage.offset);
  }
  const int8_t* pixel_table() const { return reinterpret_cast<const int8_t*>(own_filters() + stage()->filters); }
  int32_t filter_count() const {
    return filters_ != nullptr ? filters_->count : static_cast<int32_t>(stage()->filters);
  }
  const FilterRecord& filter(int32_t index) const {
    return filters_ != nullptr ? filters_->records[index] : own_filters()[index];
  }

  FilterChain filters() const;

  // Index of the op that produces a tensor, -1 for the network's input.
  int32_t producer(uint32_t tensor) const;
  // Index of the last op that reads a tensor; op_count() for the network's output.
  int32_t last_use(uint32_t tensor) const;

 private:
  Status check_sections() const;
  Status check_tensors() const;
  Status check_order() const;
  Status check_op(int32_t index) const;
  Status check_blocks() const;
  Status check_stage() const;
  bool name_is_valid(uint32_t offset) const;
  const FilterRecord* own_filters() const { return reinterpret_cast<const FilterRecord*>(stage() + 1); }
  template <typename T>
  const T* parameter(const OpRecord& op, T* WritableLayer::*which, uint32_t offset) const {
    const T* in_memory = overlay_ == nullptr ? nullptr : overlay_[&op - ops_].*which;
    return in_memory != nullptr ? in_memory : reinterpret_cast<const T*>(image_ + header_->data.offset + offset);
  }

  const uint8_t* image_ = nullptr;
  const ImageHeader* header_ = nullptr;
  const TensorRecord* tensors_ = nullptr;
  const OpRecord* ops_ = nullptr;
  const WritableLayer* overlay_ = nullptr;
  const FilterChain* filters_ = nullptr;
};

bool has_weights(const OpRecord& op);
int32_t weight_count(const Model& model, const OpRecord& op);
// Multiply-accumulates of one op for one image; 0 for ops without weights.
int64_t mac_count(const Model& model, const OpRecord& op);
bool channel_is_dead(float weight_scale);

// First weight of an output channel and the stride between its weights.
struct ChannelWeights {
  int32_t first, stride, count;
};
ChannelWeights channel_weights(const Model& model, const OpRecord& op, int32_t channel);

}  // namespace pmt
