#include "tests/image_builder.hpp"

#include <cstddef>
#include <stdexcept>

#include "core/base/crc32.hpp"

namespace pmt::tests {
namespace {

void align(std::vector<uint8_t>& bytes) { bytes.resize((bytes.size() + 15) / 16 * 16); }

template <typename Record>
Section append(std::vector<uint8_t>& bytes, const std::vector<Record>& records) {
  align(bytes);
  const Section section = {static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(records.size())};
  const auto* first = reinterpret_cast<const uint8_t*>(records.data());
  bytes.insert(bytes.end(), first, first + records.size() * sizeof(Record));
  return section;
}

}  // namespace

LinearData constant_data(size_t weights, size_t channels) {
  return {std::vector<int8_t>(weights, 1), std::vector<int32_t>(channels, 0), std::vector<float>(channels, 0.1f)};
}

OpRecord plain_op(OpKind kind, uint32_t input, uint32_t output) {
  return {kind, 0, {input, no_tensor}, output, 1, 1, 1, 1, 0, 0, 0, 0, -128, 127, 0, 0, 0};
}

OpRecord window_op(OpKind kind, uint32_t input, uint32_t output, const Window& window, int32_t pad_bottom,
                   int32_t pad_right) {
  OpRecord op = plain_op(kind, input, output);
  op.kernel_h = window.kernel_h;
  op.kernel_w = window.kernel_w;
  op.stride_h = window.stride_h;
  op.stride_w = window.stride_w;
  op.pad_top = window.pad_top;
  op.pad_left = window.pad_left;
  op.pad_bottom = pad_bottom;
  op.pad_right = pad_right;
  return op;
}

OpRecord join_op(OpKind kind, uint32_t first, uint32_t second, uint32_t output) {
  OpRecord op = plain_op(kind, first, output);
  op.input[1] = second;
  return op;
}

ImageBuilder::ImageBuilder(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors) add_tensor({t.height, t.width, t.channels}, t.scale, t.zero_point);
}

Shape ImageBuilder::shape(uint32_t index) const {
  return {tensors_[index].height, tensors_[index].width, tensors_[index].channels};
}

uint32_t ImageBuilder::add_tensor(const Shape& shape, float scale, int32_t zero_point) {
  tensors_.push_back({shape.height, shape.width, shape.channels, scale, zero_point, 0});
  return static_cast<uint32_t>(tensors_.size() - 1);
}

int32_t ImageBuilder::add_op(const OpRecord& op) {
  ops_.push_back(op);
  return static_cast<int32_t>(ops_.size() - 1);
}

int32_t ImageBuilder::add_op(OpRecord op, const LinearData& data) {
  op.weight_offset = add_data(data.weights);
  op.bias_offset = add_data(data.bias);
  op.scale_offset = add_data(data.scales);
  return add_op(op);
}

template <typename Value>
uint32_t ImageBuilder::add_data(const std::vector<Value>& values) {
  return append(data_, values).offset;
}

void ImageBuilder::add_block(const std::vector<uint32_t>& layers, uint32_t name) {
  blocks_.push_back({name, static_cast<uint32_t>(block_layers_.size()), static_cast<uint32_t>(layers.size())});
  block_layers_.insert(block_layers_.end(), layers.begin(), layers.end());
}

void ImageBuilder::set_stage(int32_t height, int32_t width, const std::vector<FilterRecord>& filters) {
  stage_.clear();
  append(stage_, std::vector<StageRecord>{{height, width, static_cast<uint32_t>(filters.size()), 0}});
  append(stage_, filters);
  for (int32_t c = 0; c < tensors_[0].channels; ++c) {
    for (int32_t pixel = 0; pixel < pixel_values; ++pixel) {
      stage_.push_back(static_cast<uint8_t>(table_value(c, static_cast<uint8_t>(pixel))));
    }
  }
}

uint32_t ImageBuilder::add_name(const std::string& name) {
  const auto offset = static_cast<uint32_t>(names_.size());
  names_.insert(names_.end(), name.c_str(), name.c_str() + name.size() + 1);
  return offset;
}

AlignedBytes ImageBuilder::build() const {
  ImageHeader header = {};
  std::memcpy(header.magic, image_magic, sizeof image_magic);
  header.version = image_version;
  std::vector<uint8_t> bytes(sizeof header);
  header.tensors = append(bytes, tensors_);
  header.ops = append(bytes, ops_);
  header.blocks = append(bytes, blocks_);
  header.block_layers = append(bytes, block_layers_);
  header.names = append(bytes, names_);
  header.metadata = append(bytes, std::vector<uint8_t>(metadata_.begin(), metadata_.end()));
  header.data = append(bytes, data_);
  if (!stage_.empty()) {
    header.version = image_version_with_stage;
    header.stage = append(bytes, stage_);
  }
  align(bytes);
  header.image_bytes = static_cast<uint32_t>(bytes.size());
  header.input_tensor = 0;
  header.output_tensor = ops_.back().output;
  for (float& deviation : header.input_std) deviation = 1.0f;
  std::memcpy(bytes.data(), &header, sizeof header);
  AlignedBytes image(bytes.data(), bytes.size());
  seal(image);
  return image;
}

void OwnedModel::take(AlignedBytes image) {
  image_ = std::move(image);
  const Status status = open(image_.data(), image_.size());
  if (!status.ok()) throw std::runtime_error(message(status.code));
}

Status status_of(const AlignedBytes& image) {
  Model model;
  return model.open(image.data(), image.size());
}

void seal(AlignedBytes& image) {
  if (image.size() < 16) return;
  image.set_word(offsetof(ImageHeader, crc32), crc32(image.data() + 16, image.size() - 16));
}

}  // namespace pmt::tests
