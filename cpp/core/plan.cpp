#include "core/plan.hpp"

#include "core/arithmetic.hpp"

namespace pmt {
namespace {

constexpr int32_t unplaced = -1;
constexpr int32_t buffer_alignment = 16;

}  // namespace

int32_t Plan::size(int32_t tensor) const { return round_up(element_count(model_->tensor(tensor)), buffer_alignment); }

void Plan::lifetime(int32_t tensor, int32_t* first, int32_t* last) const {
  const int32_t made_by = producer(static_cast<uint32_t>(tensor));
  const int32_t used_by = table_[3 * tensors_ + tensor];
  *first = made_by < 0 ? 0 : made_by;
  *last = used_by < *first ? *first : used_by;
}

Plan::Buffer Plan::buffer_at(int32_t entry) const {
  return entry < tensors_ ? Buffer{Pass::main, entry} : Buffer{Pass::query, entry - tensors_};
}

bool Plan::exists(const Buffer& buffer) const {
  if (buffer.pass == Pass::main) return true;
  const int32_t made_by = producer(static_cast<uint32_t>(buffer.tensor));
  return layer_count_ > 0 && made_by >= layers_[0];
}

bool Plan::conflict(const Buffer& a, const Buffer& b) const {
  int32_t a_first, a_last, b_first, b_last;
  lifetime(a.tensor, &a_first, &a_last);
  lifetime(b.tensor, &b_first, &b_last);
  if (a.pass == b.pass) return a_first <= b_last && b_first <= a_last;
  if (memory_ == QueryMemory::apart) return false;
  if (a.pass == Pass::query) return conflict(b, a);
  for (int32_t i = 0; i < layer_count_; ++i) {
    const int32_t layer = layers_[i];
    if (a_first <= layer && layer <= a_last && b_first >= layer) return true;
  }
  return false;
}

bool Plan::overlap(const Buffer& a, const Buffer& b) const {
  const int32_t a_offset = offset(a.pass, a.tensor), b_offset = offset(b.pass, b.tensor);
  return a_offset < b_offset + size(b.tensor) && b_offset < a_offset + size(a.tensor);
}

void Plan::place(const Buffer& buffer) {
  int32_t& place = table_[static_cast<int32_t>(buffer.pass) * tensors_ + buffer.tensor];
  place = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t i = 0; i < 2 * tensors_; ++i) {
      const Buffer other = buffer_at(i);
      const bool itself = other.pass == buffer.pass && other.tensor == buffer.tensor;
      if (itself || table_[i] == unplaced || !overlap(buffer, other) || !conflict(buffer, other)) continue;
      place = table_[i] + size(other.tensor);
      moved = true;
    }
  }
  if (buffer.pass == Pass::query && memory_ == QueryMemory::apart) return;
  const int32_t end = place + size(buffer.tensor);
  bytes_ = end > bytes_ ? end : bytes_;
}

void Plan::make(const Model& model, const int32_t* layers, int32_t layer_count, QueryMemory memory, int32_t* table) {
  model_ = &model;
  layers_ = layers;
  layer_count_ = layer_count;
  memory_ = memory;
  table_ = table;
  tensors_ = model.tensor_count();
  bytes_ = 0;
  for (int32_t i = 0; i < 2 * tensors_; ++i) table_[i] = unplaced;
  for (int32_t i = 0; i < tensors_; ++i) {
    table_[2 * tensors_ + i] = model.producer(static_cast<uint32_t>(i));
    table_[3 * tensors_ + i] = model.last_use(static_cast<uint32_t>(i));
  }
  for (;;) {
    int32_t largest = -1;
    for (int32_t i = 0; i < 2 * tensors_; ++i) {
      if (table_[i] != unplaced || !exists(buffer_at(i))) continue;
      if (largest < 0 || size(buffer_at(i).tensor) > size(buffer_at(largest).tensor)) largest = i;
    }
    if (largest < 0) return;
    place(buffer_at(largest));
  }
}

int32_t Plan::query_bytes(int32_t first) const {
  int32_t bytes = 0;
  for (int32_t i = 0; i < tensors_; ++i) {
    if (offset(Pass::query, i) == unplaced || producer(static_cast<uint32_t>(i)) < first) continue;
    const int32_t end = offset(Pass::query, i) + size(i);
    bytes = end > bytes ? end : bytes;
  }
  return bytes;
}

bool Plan::is_free_of_overlaps() const {
  for (int32_t i = 0; i < 2 * tensors_; ++i) {
    for (int32_t k = 0; k < i; ++k) {
      if (table_[i] == unplaced || table_[k] == unplaced) continue;
      const Buffer a = buffer_at(i), b = buffer_at(k);
      if (conflict(a, b) && overlap(a, b)) return false;
    }
  }
  return true;
}

}  // namespace pmt
