#include "common/checkpoint.hpp"

#include "common/board.hpp"
#include "core/crc32.hpp"

namespace pmt::firmware {
namespace {

constexpr size_t block_bytes = 512;
constexpr size_t checked_from = 16;  // the header's checksum covers the rest of the image

// A range of the image, block_begin .. block_begin + count, that is being put together.
struct Block {
  uint8_t* bytes;
  size_t begin;
  size_t count;
};

// Copies those bytes of `from`, which stands at `begin` in the image, that lie inside the block.
void overlay(const Block& block, const uint8_t* from, size_t begin, size_t count) {
  const size_t first = begin > block.begin ? begin : block.begin;
  const size_t image_end = begin + count;
  const size_t block_end = block.begin + block.count;
  const size_t end = image_end < block_end ? image_end : block_end;
  for (size_t i = first; i < end; ++i) block.bytes[i - block.begin] = from[i - begin];
}

void fill(const CheckpointSource& source, const Block& block) {
  const Model& model = *source.model;
  overlay(block, source.image, 0, model.header().image_bytes);
  for (int32_t i = 0; i < source.layer_count; ++i) {
    const Layer& layer = source.layers[i];
    const OpRecord& op = model.op(layer.op);
    const size_t data = model.header().data.offset;
    overlay(block, reinterpret_cast<const uint8_t*>(layer.weights), data + op.weight_offset,
            static_cast<size_t>(layer.weight_count));
    overlay(block, reinterpret_cast<const uint8_t*>(layer.bias), data + op.bias_offset,
            static_cast<size_t>(layer.channels) * sizeof(int32_t));
  }
}

bool write_blocks(const CheckpointSource& source, int32_t file, uint32_t crc) {
  uint8_t bytes[block_bytes];
  const size_t total = source.model->header().image_bytes;
  for (size_t begin = 0; begin < total; begin += block_bytes) {
    const Block block = {bytes, begin, total - begin < block_bytes ? total - begin : block_bytes};
    fill(source, block);
    overlay(block, reinterpret_cast<const uint8_t*>(&crc), offsetof(ImageHeader, crc32), sizeof crc);
    if (!board::append(file, bytes, block.count)) return false;
  }
  return true;
}

}  // namespace

uint32_t checkpoint_crc32(const CheckpointSource& source) {
  uint8_t bytes[block_bytes];
  const size_t total = source.model->header().image_bytes;
  uint32_t crc = 0;
  for (size_t begin = checked_from; begin < total; begin += block_bytes) {
    const Block block = {bytes, begin, total - begin < block_bytes ? total - begin : block_bytes};
    fill(source, block);
    crc = crc32(bytes, block.count, crc);
  }
  return crc;
}

bool write_checkpoint(const CheckpointSource& source, const char* name, const char* name_aside) {
  const uint32_t crc = checkpoint_crc32(source);
  const int32_t file = board::open(name_aside, board::Access::write);
  if (file == board::no_file) return false;
  const bool written = write_blocks(source, file, crc);
  return board::close(file) && written && board::rename(name_aside, name);
}

}  // namespace pmt::firmware
