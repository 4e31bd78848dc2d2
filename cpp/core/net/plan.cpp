#include "core/net/plan.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

constexpr int32_t buffer_alignment = 16;

}  // namespace

int32_t Plan::main_end(int32_t layer) const {
  if (perturbs_nodes_ == nullptr) return layer + 1;
  for (int32_t i = 0; i < layer_count_; ++i) {
    if (layers_[i] == layer && perturbs_nodes_[i] != 0 && !segments_.streams(layer)) return layer + 1;
  }
  return segments_.begin(layer);
}

// Whether a buffer of the main pass must outlive a layer's queries.
bool Plan::kept(int32_t item, int32_t layer) const {
  if (item >= tensors_) return false;
  int32_t first, last;
  lifetime(item, &first, &last);
  if (!is_compact()) return first <= layer && layer <= last;
  const int32_t made_by = producers()[item], end = layer == queried_ ? queried_end_ : main_end(layer);
  // The last op's input stays for the clean loss.
  const int32_t next = end < model_->op_count() ? end : end - 1;
  return made_by < end && (last >= next || made_by == layer);
}

void Plan::start(const Model& model, const int32_t* layers, int32_t layer_count, QueryMemory memory, int32_t* table) {
  model_ = &model;
  layers_ = layers;
  layer_count_ = layer_count;
  memory_ = memory;
  table_ = table;
  perturbs_nodes_ = nullptr;
  scratch_bytes_ = nullptr;
  tile_bytes_ = nullptr;
  tensors_ = model.tensor_count();
  for (int32_t i = 0; i < tensors_; ++i) {
    producers()[i] = model.producer(static_cast<uint32_t>(i));
    last_uses()[i] = model.last_use(static_cast<uint32_t>(i));
  }
  queried_ = layer_count > 0 ? layers[0] : -1;
  segments_.open(model, producers(), last_uses(), last_uses() + tensors_);
}

void Plan::make(const Model& model, const int32_t* layers, int32_t layer_count, QueryMemory memory, int32_t* table) {
  start(model, layers, layer_count, memory, table);
  list_items();
  place_all(INT32_MAX);
}

Status Plan::make_compact(const Model& model, const int32_t* layers, int32_t layer_count, const Compact& compact,
                          int32_t* table) {
  start(model, layers, layer_count, QueryMemory::shared, table);
  perturbs_nodes_ = compact.perturbs_nodes;
  scratch_bytes_ = compact.scratch_bytes;
  tile_bytes_ = compact.tile_bytes;
  if (compact.chosen != nullptr) {
    const bool can = compact.streams || compact.chosen_count == 0;
    if (!can || !segments_.choose(compact.chosen, compact.chosen_count)) return {Code::plan_streams};
  } else if (compact.streams) {
    segments_.choose({layers_, compact.perturbs_nodes, layer_count_});
  }
  list_items();
  if (compact.chosen == nullptr && compact.streams) search();
  place_all(INT32_MAX);
  return {};
}

// Streaming repeats work in queries and calls kernels more often: where it saves no byte, it is undone, and
// bands are as wide as costs none.
void Plan::search() {
  place_all(INT32_MAX);
  int32_t least = bytes_;
  for (int32_t end = model_->op_count() - 1; end >= 0;) {
    const int32_t begin = segments_.begin(end);
    if (begin < end && !leave_alone(begin, end, &least)) segments_.set(begin, end, 1);
    end = begin - 1;
  }
  for (int32_t begin = 0; begin < model_->op_count(); begin = segments_.end(begin) + 1) {
    if (segments_.streams(begin)) widen_band(begin, segments_.end(begin), &least);
  }
}

bool Plan::leave_alone(int32_t begin, int32_t end, int32_t* least) {
  for (int32_t i = begin; i <= end; ++i) segments_.set_alone(i);
  if (!place_all(*least)) return false;
  *least = bytes_;
  return true;
}

void Plan::widen_band(int32_t begin, int32_t end, int32_t* least) {
  for (int32_t band = 2; band <= largest_band; band *= 2) {
    if (!segments_.set(begin, end, band)) continue;
    if (!place_all(*least)) {
      segments_.set(begin, end, band / 2);
      return;
    }
    *least = bytes_;
  }
}

int32_t Plan::tile_of(int32_t layer) const {
  int32_t bytes = 0;
  for (int32_t i = 0; i < layer_count_; ++i) bytes = layers_[i] == layer ? tile_bytes_[i] : bytes;
  if (bytes > 0 && segments_.streams(layer)) bytes = weight_count(*model_, model_->op(layer));
  return round_up(bytes, buffer_alignment);
}

void Plan::size_all() {
  for (int32_t i = 0; i < tensors_; ++i) {
    const TensorRecord& record = model_->tensor(i);
    const int32_t rows = segments_.rows(producers()[i], record.height);
    sizes()[i] = round_up(rows * record.width * record.channels, buffer_alignment);
  }
  int32_t* scratch = sizes() + tensors_;
  for (int32_t op = 0; op < model_->op_count(); ++op) {
    const int32_t bytes = is_compact() ? round_up(scratch_bytes_[op], buffer_alignment) : 0;
    const int32_t begin = segments_.begin(op);
    if (begin == op || bytes > scratch[begin]) scratch[begin] = bytes;
    if (begin != op) scratch[op] = 0;
  }
  sizes()[tile()] = 0;
}

int32_t Plan::query_bytes(int32_t first) const {
  int32_t bytes = 0;
  for (int32_t i = 0; i < tensors_; ++i) {
    if (offset(Pass::query, i) == unplaced || producers()[i] < first) continue;
    const int32_t end = offset(Pass::query, i) + size(i);
    bytes = end > bytes ? end : bytes;
  }
  return bytes;
}

// A buffer of the main pass.
bool Plan::is_alive(int32_t item, int32_t op) const {
  if (offsets(Pass::main)[item] == unplaced) return false;
  return lives_during(item, {op, op});
}

// Where the next buffer that is alive at an op starts, from an offset on.
int32_t Plan::next_start(int32_t op, int32_t offset) const {
  const int32_t* starts = offsets(Pass::main);
  int32_t next = bytes_;
  for (int32_t i = 0; i < items(); ++i) {
    if (starts[i] >= next || starts[i] + sizes()[i] <= offset || !is_alive(i, op)) continue;
    next = starts[i];
  }
  return next;
}

Plan::Gap Plan::gap(int32_t op) const {
  Gap largest = {0, next_start(op, 0)};
  for (int32_t i = 0; i < items(); ++i) {
    if (!is_alive(i, op)) continue;
    const int32_t offset = offsets(Pass::main)[i] + sizes()[i];
    const int32_t bytes = next_start(op, offset) - offset;
    if (bytes > largest.bytes) largest = {offset, bytes};
  }
  return largest;
}

void Plan::widen(int32_t op, int32_t bytes) {
  if (gap(op).bytes >= bytes) return;
  int32_t end = 0;
  for (int32_t i = 0; i < items(); ++i) {
    if (!is_alive(i, op)) continue;
    const int32_t own = offsets(Pass::main)[i] + sizes()[i];
    end = own > end ? own : end;
  }
  reserve(end + bytes);
}

void Plan::reserve(int32_t bytes) { bytes_ = bytes > bytes_ ? bytes : bytes_; }

}  // namespace pmt
