#include "core/plan.hpp"

#include "core/arithmetic.hpp"

namespace pmt {
namespace {

constexpr int32_t unplaced = -1;
constexpr int32_t buffer_alignment = 16;
constexpr Pass passes[] = {Pass::main, Pass::query};

}  // namespace

void Plan::lifetime(int32_t tensor, int32_t* first, int32_t* last) const {
  const int32_t made_by = producers()[tensor], used_by = last_uses()[tensor];
  const int32_t last_op = used_by < made_by ? made_by : used_by;
  *first = made_by < 0 ? 0 : segments_.begin(made_by);
  *last = last_op < 0 ? 0 : (last_op < model_->op_count() ? segments_.end(last_op) : last_op);
}

int32_t Plan::main_end(int32_t layer) const {
  if (perturbs_nodes_ == nullptr) return layer + 1;
  for (int32_t i = 0; i < layer_count_; ++i) {
    if (layers_[i] == layer && perturbs_nodes_[i] != 0 && !segments_.streams(layer)) return layer + 1;
  }
  return segments_.begin(layer);
}

void Plan::lifetime_of(int32_t item, int32_t* first, int32_t* last) const {
  if (item < tensors_) {
    lifetime(item, first, last);
  } else {
    const int32_t op = item == tile() ? queried_ : item - tensors_;
    *first = segments_.begin(op);
    *last = segments_.end(op);
  }
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

// Scratch is there once a segment, as large as any of its ops needs it.
bool Plan::exists(const Buffer& buffer) const {
  if (buffer.item == tile()) return buffer.pass == Pass::query && sizes()[tile()] > 0;
  const bool scratch = buffer.item >= tensors_;
  const int32_t made_by = scratch ? buffer.item - tensors_ : producers()[buffer.item];
  if (scratch && (!is_compact() || segments_.begin(made_by) != made_by)) return false;
  return buffer.pass == Pass::main || (queried_ >= 0 && made_by >= query_start(queried_));
}

bool Plan::conflict(const Buffer& a, const Buffer& b) const {
  if (a.pass == Pass::query && b.pass == Pass::main) return conflict(b, a);
  if (a.pass != b.pass && is_compact()) return kept(a.item, queried_);
  int32_t a_first, a_last, b_first, b_last;
  lifetime_of(a.item, &a_first, &a_last);
  lifetime_of(b.item, &b_first, &b_last);
  if (a.pass == b.pass) return a_first <= b_last && b_first <= a_last;
  if (memory_ == QueryMemory::apart) return false;
  for (int32_t i = 0; i < layer_count_; ++i) {
    if (b_first >= query_start(layers_[i]) && kept(a.item, layers_[i])) return true;
  }
  return false;
}

bool Plan::overlap(const Buffer& a, const Buffer& b) const {
  const int32_t a_begin = offsets(a.pass)[a.item], b_begin = offsets(b.pass)[b.item];
  return a_begin < b_begin + sizes()[b.item] && b_begin < a_begin + sizes()[a.item];
}

// At the lowest offset that no other buffer forbids.
void Plan::place(const Buffer& buffer) {
  const int32_t bytes = sizes()[buffer.item];
  int32_t place = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Pass pass : passes) {
      const int32_t* offset = offsets(pass);
      for (int32_t i = 0; i < items(); ++i) {
        const int32_t end = offset[i] + sizes()[i];
        if (offset[i] == unplaced || offset[i] >= place + bytes || end <= place) continue;
        if (!conflict(buffer, {pass, i})) continue;
        place = end;
        moved = true;
      }
    }
  }
  offsets(buffer.pass)[buffer.item] = place;
  if (buffer.pass == Pass::query && memory_ == QueryMemory::apart) return;
  bytes_ = place + bytes > bytes_ ? place + bytes : bytes_;
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
    search(compact);
  }
  place_all(INT32_MAX);
  return {};
}

// Streaming repeats work in queries and calls kernels more often: where it saves no byte, it is undone, and
// bands are as wide as costs none.
void Plan::search(const Compact& compact) {
  segments_.choose({layers_, compact.perturbs_nodes, layer_count_});
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
    segments_.set(begin, end, band);
    if (!place_all(*least)) {
      segments_.set(begin, end, band / 2);
      return;
    }
    *least = bytes_;
  }
}

void Plan::place_queries(int32_t layer) {
  if (!is_compact()) return;
  queried_ = layer;
  queried_end_ = main_end(layer);
  sizes()[tile()] = round_up(tile_of(layer), buffer_alignment);
  clear(Pass::query);
  place_largest_first(Pass::query);
}

int32_t Plan::tile_of(int32_t layer) const {
  int32_t bytes = 0;
  for (int32_t i = 0; i < layer_count_; ++i) bytes = layers_[i] == layer ? tile_bytes_[i] : bytes;
  return bytes > 0 && segments_.streams(layer) ? weight_count(*model_, model_->op(layer)) : bytes;
}

void Plan::clear(Pass pass) {
  for (int32_t i = 0; i < items(); ++i) offsets(pass)[i] = unplaced;
}

// Gives up, with false, once it takes more than so many bytes.
bool Plan::place_all(int32_t most) {
  bytes_ = 0;
  size_all();
  clear(Pass::main);
  clear(Pass::query);
  place_largest_first(Pass::main);
  for (int32_t i = 0; is_compact() && i < layer_count_ && bytes_ <= most; ++i) place_queries(layers_[i]);
  return bytes_ <= most;
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

// What of a pass has no place yet. Other plans than compact ones place both passes together.
void Plan::place_largest_first(Pass only) {
  for (;;) {
    Buffer largest = {Pass::main, -1};
    for (const Pass pass : passes) {
      if (is_compact() && pass != only) continue;
      for (int32_t i = 0; i < items(); ++i) {
        const bool larger = largest.item < 0 || sizes()[i] > sizes()[largest.item];
        if (larger && offsets(pass)[i] == unplaced && exists({pass, i})) largest = {pass, i};
      }
    }
    if (largest.item < 0) return;
    place(largest);
  }
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
  int32_t first, last;
  lifetime_of(item, &first, &last);
  return first <= op && op <= last;
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

bool Plan::is_free_of_overlaps() const {
  for (int32_t i = 0; i < 2 * items(); ++i) {
    const Buffer a = {static_cast<Pass>(i / items()), i % items()};
    for (int32_t k = 0; k < i; ++k) {
      const Buffer b = {static_cast<Pass>(k / items()), k % items()};
      if (offsets(a.pass)[a.item] == unplaced || offsets(b.pass)[b.item] == unplaced) continue;
      if (overlap(a, b) && conflict(a, b)) return false;
    }
  }
  return true;
}

}  // namespace pmt
