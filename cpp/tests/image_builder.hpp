// Writes .pmt images for the tests.
#pragma once

#include <string>
#include <vector>

#include "core/image/model.hpp"
#include "core/kernels/table.hpp"
#include "tests/aligned_bytes.hpp"

namespace pmt::tests {

struct LinearData {
  std::vector<int8_t> weights;
  std::vector<int32_t> bias;
  std::vector<float> scales;
};

// Weights of 1, no biases, scales of 0.1.
LinearData constant_data(size_t weights, size_t channels);

// An op without window and activation; kernel and stride are 1.
OpRecord plain_op(OpKind kind, uint32_t input, uint32_t output);

OpRecord window_op(OpKind kind, uint32_t input, uint32_t output, const Window& window, int32_t pad_bottom,
                   int32_t pad_right);

// An op without window that reads two tensors.
OpRecord join_op(OpKind kind, uint32_t first, uint32_t second, uint32_t output);

class ImageBuilder {
 public:
  struct Tensor {
    int32_t height, width, channels;
    float scale = 0.05f;
    int32_t zero_point = 0;
  };
  explicit ImageBuilder(const std::vector<Tensor>& tensors = {});

  // Return the index of what they add. The first tensor is the network's input, the last op's
  // output its output.
  uint32_t add_tensor(const Shape& shape, float scale = 0.05f, int32_t zero_point = 0);
  int32_t add_op(const OpRecord& op);
  int32_t add_op(OpRecord op, const LinearData& data);
  void add_block(const std::vector<uint32_t>& layers, uint32_t name = 0);

  // Adds a name and returns its offset, for a record's `name`; records that set none are called "x".
  uint32_t add_name(const std::string& name);
  void name_tensor(uint32_t index, const std::string& name) { tensors_[index].name = add_name(name); }
  void set_metadata(const std::string& json) { metadata_ = json; }

  void set_stage(int32_t height, int32_t width, const std::vector<FilterRecord>& filters);
  // The input that a stage makes of a pixel of a channel.
  static int8_t table_value(int32_t channel, uint8_t pixel) { return static_cast<int8_t>(pixel - 128 + channel); }

  const TensorRecord& tensor(uint32_t index) const { return tensors_[index]; }
  Shape shape(uint32_t index) const;

  AlignedBytes build() const;

 private:
  template <typename Value>
  uint32_t add_data(const std::vector<Value>& values);

  std::vector<TensorRecord> tensors_;
  std::vector<OpRecord> ops_;
  std::vector<BlockRecord> blocks_;
  std::vector<uint32_t> block_layers_;
  std::vector<uint8_t> data_;
  std::vector<uint8_t> names_ = {'x', 0};
  std::string metadata_ = "{}";
  std::vector<uint8_t> stage_;
};

// The model of a valid image, with the image.
class OwnedModel : public Model {
 public:
  OwnedModel() = default;
  explicit OwnedModel(AlignedBytes image) { take(std::move(image)); }
  OwnedModel(const OwnedModel&) = delete;
  OwnedModel& operator=(const OwnedModel&) = delete;

  void take(AlignedBytes image);
  const AlignedBytes& image() const { return image_; }

 private:
  AlignedBytes image_{0};
};

// What opening an image says.
Status status_of(const AlignedBytes& image);

// Makes the checksum right again after an edit, so that the other checks are what sees it.
void seal(AlignedBytes& image);

}  // namespace pmt::tests
