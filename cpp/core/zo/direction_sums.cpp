#include "core/zo/direction_sums.hpp"

namespace pmt {
namespace {

constexpr int32_t least_block = 64;  // longer runs than few directions need

// sums[i] = values[i] times its sign, times -1 where `negative`.
void multiply(const int8_t* signs, const int32_t* values, bool negative, int32_t count, int32_t* sums) {
  const int32_t flip = negative ? -1 : 0;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t minus = (signs[i] >> 7) ^ flip;  // -1: all bits, and x ^ -1 is -x - 1
    sums[i] = (values[i] ^ minus) - minus;
  }
}

}  // namespace

int32_t hadamard_block(int32_t directions) {
  const auto rows = static_cast<int32_t>(power_of_two_above(static_cast<uint32_t>(directions)));
  return rows < least_block ? least_block : rows;
}

DirectionSums::DirectionSums(const StepContext& context, const Workspace& workspace, const Layer& layer,
                             uint32_t sample, const int32_t* differences)
    : context_(context),
      workspace_(workspace),
      layer_(layer),
      sample_(sample),
      differences_(differences),
      directions_(direction_count(context, layer)),
      signs_(direction_signs(context, layer, 0, sample, Purpose::weight_signs)) {
  if (context.options->directions == Directions::hadamard) transform();
}

int32_t DirectionSums::difference(int32_t direction) const {
  if (context_.options->pairs == Pairs::one_sided) return differences_[direction];
  return differences_[2 * direction] - differences_[2 * direction + 1];
}

// A row is its block's row in the columns' high bits, times a row of the block in the low ones: two
// short transforms are enough for any number of columns.
void DirectionSums::transform() {
  const HadamardRows rows = hadamard_rows(context_, layer_, sample_);
  block_ = hadamard_block(directions_);
  const auto block = static_cast<uint32_t>(block_);
  int32_t* first = workspace_.transforms;
  int32_t* second = workspace_.transforms + block_;
  __builtin_memset(first, 0, 2 * block * sizeof(int32_t));
  block_of_rows_[0] = rows.row(0) / block;
  block_of_rows_[1] = rows.row(static_cast<uint32_t>(directions_ - 1)) / block;
  for (int32_t k = 0; k < directions_; ++k) {
    const uint32_t row = rows.row(static_cast<uint32_t>(k));
    int32_t* half = row / block == block_of_rows_[0] ? first : second;
    half[row % block] += rows.negative(static_cast<uint32_t>(k)) ? -difference(k) : difference(k);
  }
  walsh_hadamard_transform(first, block_);
  transforms_[0] = first;
  transforms_[1] = second;
  if (block_of_rows_[0] == block_of_rows_[1]) return;
  walsh_hadamard_transform(second, block_);
  for (int32_t i = 0; i < block_; ++i) {
    const int32_t sum = first[i] + second[i];
    second[i] = first[i] - second[i];
    first[i] = sum;
  }
}

void DirectionSums::open(Purpose purpose) {
  position_ = 0;
  switch (context_.options->directions) {
    case Directions::rademacher:
      for (int32_t k = 0; k < directions_; ++k) {
        workspace_.streams[k] = direction_signs(context_, layer_, static_cast<uint32_t>(k), sample_, purpose);
      }
      break;
    case Directions::hadamard:
      signs_ = direction_signs(context_, layer_, 0, sample_, purpose);
      column_ = first_column(context_, layer_, purpose);
      break;
    case Directions::coordinate: break;
  }
}

void DirectionSums::next(int32_t count) {
  switch (context_.options->directions) {
    case Directions::rademacher: next_rademacher(count); break;
    case Directions::hadamard: next_hadamard(count); break;
    case Directions::coordinate: next_nodes(count); break;
  }
  position_ += count;
}

void DirectionSums::skip(int32_t count) {
  switch (context_.options->directions) {
    case Directions::rademacher:
      for (int32_t k = 0; k < directions_; ++k) workspace_.streams[k].skip(count);
      break;
    case Directions::hadamard:
      signs_.skip(count);
      column_ += static_cast<uint32_t>(count);
      break;
    case Directions::coordinate: break;
  }
  position_ += count;
}

void DirectionSums::next_rademacher(int32_t count) {
  const Kernels& kernels = context_.kernels();
  __builtin_memset(workspace_.sign_sums, 0, static_cast<uint32_t>(count) * sizeof(int32_t));
  for (int32_t k = 0; k < directions_; ++k) {
    workspace_.streams[k].next(kernels, count, workspace_.signs);
    kernels.accumulate_signs(workspace_.signs, count, difference(k), workspace_.sign_sums);
  }
}

void DirectionSums::next_hadamard(int32_t count) {
  signs_.next(context_.kernels(), count, workspace_.signs);
  const auto block = static_cast<uint32_t>(block_);
  for (int32_t done = 0; done < count;) {
    const auto start = static_cast<int32_t>(column_ % block);
    const int32_t run = count - done < block_ - start ? count - done : block_ - start;
    const uint32_t high = column_ / block;
    const uint32_t first = parity(block_of_rows_[0] & high), second = parity(block_of_rows_[1] & high);
    const int32_t* values = transforms_[first ^ second] + start;
    multiply(workspace_.signs + done, values, first != 0, run, workspace_.sign_sums + done);
    column_ += static_cast<uint32_t>(run);
    done += run;
  }
}

void DirectionSums::next_nodes(int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const int32_t sign = coordinate_of(context_, workspace_, layer_, position_ + i).sign;
    workspace_.sign_sums[i] = sign * differences_[position_ + i];
  }
}

}  // namespace pmt
