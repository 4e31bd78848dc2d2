#include "common/trained_image.hpp"

#include "common/board.hpp"
#include "core/base/crc32.hpp"

namespace pmt::firmware {
namespace {

constexpr size_t piece_bytes = 512;  // put together at once
constexpr size_t checked_from = 16;  // the header's checksum covers the rest of the image

// A range of the image, begin .. begin + count, that is being put together.
struct Piece {
  uint8_t* bytes;
  size_t begin;
  size_t count;
};

// Copies those bytes of `from`, which stands at `begin` in the image, that lie inside the piece.
void overlay(const Piece& piece, const uint8_t* from, size_t begin, size_t count) {
  const size_t first = begin > piece.begin ? begin : piece.begin;
  const size_t image_end = begin + count;
  const size_t piece_end = piece.begin + piece.count;
  const size_t end = image_end < piece_end ? image_end : piece_end;
  for (size_t i = first; i < end; ++i) piece.bytes[i - piece.begin] = from[i - begin];
}

void fill(const TrainedImage& source, const Piece& piece) {
  const Model& model = *source.model;
  overlay(piece, source.image, 0, model.header().image_bytes);
  for (int32_t i = 0; i < source.layer_count; ++i) {
    const Layer& layer = source.layers[i];
    const OpRecord& op = model.op(layer.op);
    const size_t data = model.header().data.offset;
    overlay(piece, reinterpret_cast<const uint8_t*>(layer.weights), data + op.weight_offset,
            static_cast<size_t>(layer.weight_count));
    overlay(piece, reinterpret_cast<const uint8_t*>(layer.bias), data + op.bias_offset,
            static_cast<size_t>(layer.channels) * sizeof(int32_t));
  }
}

}  // namespace

uint32_t trained_crc32(const TrainedImage& source) {
  uint8_t bytes[piece_bytes];
  const size_t total = source.model->header().image_bytes;
  uint32_t crc = 0;
  for (size_t begin = checked_from; begin < total; begin += piece_bytes) {
    const Piece piece = {bytes, begin, total - begin < piece_bytes ? total - begin : piece_bytes};
    board::feed_watchdog();
    fill(source, piece);
    crc = crc32(bytes, piece.count, crc);
  }
  return crc;
}

}  // namespace pmt::firmware
