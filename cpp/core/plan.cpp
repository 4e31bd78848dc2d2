#include "core/plan.hpp"

#include "core/arithmetic.hpp"

namespace pmt {
namespace {

constexpr int32_t unplaced = -1;
constexpr int32_t buffer_alignment = 16;
constexpr int32_t largest_band = 16;

}  // namespace

int32_t Plan::size(int32_t tensor) const {
  const TensorRecord& record = model_->tensor(tensor);
  const int32_t rows = segments_.rows(producer(static_cast<uint32_t>(tensor)), record.height);
  return round_up(rows * record.width * record.channels, buffer_alignment);
}

void Plan::lifetime(int32_t tensor, int32_t* first, int32_t* last) const {
  const int32_t made_by = producer(static_cast<uint32_t>(tensor));
  const int32_t used_by = table_[3 * tensors_ + tensor];
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

int32_t Plan::scratch_size(int32_t op) const { return table_[4 * tensors_ + 2 * model_->op_count() + op]; }

int32_t Plan::scratch_offset(Pass pass, int32_t op) const {
  return table_[4 * tensors_ + static_cast<int32_t>(pass) * model_->op_count() + segments_.begin(op)];
}

void Plan::lifetime_of(int32_t item, int32_t* first, int32_t* last) const {
  if (item < tensors_) {
    lifetime(item, first, last);
  } else {
    *first = segments_.begin(item - tensors_);
    *last = segments_.end(item - tensors_);
  }
}

// Whether a buffer of the main pass must outlive a layer's queries.
bool Plan::kept(int32_t item, int32_t layer) const {
  if (item >= tensors_) return false;
  int32_t first, last;
  lifetime(item, &first, &last);
  if (!is_compact()) return first <= layer && layer <= last;
  const int32_t made_by = producer(static_cast<uint32_t>(item)), end = main_end(layer);
  // The last op's input stays for the clean loss.
  const int32_t next = end < model_->op_count() ? end : end - 1;
  return made_by < end && (last >= next || made_by == layer);
}

Plan::Buffer Plan::buffer_at(int32_t entry) const {
  if (entry < 2 * tensors_) return {static_cast<Pass>(entry / tensors_), entry % tensors_};
  const int32_t op = entry - 2 * tensors_, ops = model_->op_count();
  return {static_cast<Pass>(op / ops), tensors_ + op % ops};
}

// Scratch is there once a segment, as large as any of its ops needs it.
bool Plan::exists(const Buffer& buffer) const {
  const bool scratch = buffer.item >= tensors_;
  if (scratch && (!is_compact() || segments_.begin(buffer.item - tensors_) != buffer.item - tensors_)) return false;
  if (buffer.pass == Pass::main) return true;
  const int32_t made_by = scratch ? buffer.item - tensors_ : producer(static_cast<uint32_t>(buffer.item));
  return queried_ >= 0 && made_by >= query_start(queried_);
}

bool Plan::conflict(const Buffer& a, const Buffer& b) const {
  if (a.pass != b.pass && memory_ == QueryMemory::apart) return false;
  if (a.pass == Pass::query && b.pass == Pass::main) return conflict(b, a);
  if (a.pass != b.pass && is_compact()) return kept(a.item, queried_);
  int32_t a_first, a_last, b_first, b_last;
  lifetime_of(a.item, &a_first, &a_last);
  lifetime_of(b.item, &b_first, &b_last);
  if (a.pass == b.pass) return a_first <= b_last && b_first <= a_last;
  for (int32_t i = 0; i < layer_count_; ++i) {
    if (b_first >= query_start(layers_[i]) && kept(a.item, layers_[i])) return true;
  }
  return false;
}

bool Plan::overlap(int32_t a, int32_t b) const {
  return place_of(a) < place_of(b) + bytes_of(buffer_at(b).item) &&
         place_of(b) < place_of(a) + bytes_of(buffer_at(a).item);
}

void Plan::place(int32_t entry) {
  const Buffer buffer = buffer_at(entry);
  int32_t& place = place_of(entry);
  place = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t i = 0; i < entries(); ++i) {
      if (i == entry || place_of(i) == unplaced || !overlap(entry, i) || !conflict(buffer, buffer_at(i))) continue;
      place = place_of(i) + bytes_of(buffer_at(i).item);
      moved = true;
    }
  }
  if (buffer.pass == Pass::query && memory_ == QueryMemory::apart) return;
  const int32_t end = place + bytes_of(buffer.item);
  bytes_ = end > bytes_ ? end : bytes_;
}

void Plan::start(const Model& model, const int32_t* layers, int32_t layer_count, QueryMemory memory, int32_t* table) {
  model_ = &model;
  layers_ = layers;
  layer_count_ = layer_count;
  memory_ = memory;
  table_ = table;
  perturbs_nodes_ = nullptr;
  tensors_ = model.tensor_count();
  for (int32_t i = 0; i < tensors_; ++i) {
    table_[2 * tensors_ + i] = model.producer(static_cast<uint32_t>(i));
    table_[3 * tensors_ + i] = model.last_use(static_cast<uint32_t>(i));
  }
  int32_t* scratch = table_ + 4 * tensors_ + 2 * model.op_count();
  for (int32_t i = 0; i < model.op_count(); ++i) scratch[i] = 0;
  queried_ = layer_count > 0 ? layers[0] : -1;
  segments_.open(model, table_ + 2 * tensors_, table_ + 3 * tensors_, scratch + model.op_count());
}

void Plan::make(const Model& model, const int32_t* layers, int32_t layer_count, QueryMemory memory, int32_t* table) {
  start(model, layers, layer_count, memory, table);
  place_all();
}

void Plan::make_compact(const Model& model, const int32_t* layers, int32_t layer_count, const Compact& compact,
                        int32_t* table) {
  start(model, layers, layer_count, QueryMemory::shared, table);
  perturbs_nodes_ = compact.perturbs_nodes;
  scratch_bytes_ = compact.scratch_bytes;
  if (compact.streams) segments_.choose({layers, compact.perturbs_nodes, layer_count});
  place_all();
  leave_alone();
  widen_bands();
}

void Plan::place_queries(int32_t layer) {
  if (!is_compact()) return;
  queried_ = layer;
  clear(Pass::query);
  place_largest_first(Pass::query);
}

// Streaming repeats work in queries and calls kernels more often: where it saves no byte, it is undone.
void Plan::leave_alone() {
  for (int32_t end = model_->op_count() - 1; end >= 0;) {
    const int32_t begin = segments_.begin(end), least = bytes_;
    if (begin < end) {
      for (int32_t i = begin; i <= end; ++i) segments_.set_alone(i);
      place_all();
      if (bytes_ > least) {
        segments_.set(begin, end, 1);
        place_all();
      }
    }
    end = begin - 1;
  }
}

void Plan::widen_bands() {
  for (int32_t begin = 0; begin < model_->op_count(); begin = segments_.end(begin) + 1) {
    const int32_t end = segments_.end(begin), least = bytes_;
    for (int32_t band = 2; begin < end && band <= largest_band; band *= 2) {
      segments_.set(begin, end, band);
      place_all();
      if (bytes_ <= least) continue;
      segments_.set(begin, end, band / 2);
      place_all();
      break;
    }
  }
}

void Plan::clear(Pass pass) {
  for (int32_t i = 0; i < entries(); ++i) {
    if (buffer_at(i).pass == pass) place_of(i) = unplaced;
  }
}

void Plan::place_all() {
  bytes_ = 0;
  clear(Pass::main);
  clear(Pass::query);
  if (is_compact()) size_scratch();
  place_largest_first(Pass::main);
  for (int32_t i = 0; is_compact() && i < layer_count_; ++i) place_queries(layers_[i]);
}

// Of every segment, where it begins.
void Plan::size_scratch() {
  int32_t* sizes = table_ + 4 * tensors_ + 2 * model_->op_count();
  for (int32_t op = 0; op < model_->op_count(); ++op) {
    int32_t& size = sizes[segments_.begin(op)];
    const int32_t bytes = round_up(scratch_bytes_[op], buffer_alignment);
    size = op == segments_.begin(op) || bytes > size ? bytes : size;
  }
}

// What of a pass has no place yet. Other plans than compact ones place both passes together.
void Plan::place_largest_first(Pass pass) {
  for (;;) {
    int32_t largest = -1;
    for (int32_t i = 0; i < entries(); ++i) {
      const Buffer buffer = buffer_at(i);
      if ((is_compact() && buffer.pass != pass) || place_of(i) != unplaced || !exists(buffer)) continue;
      if (largest < 0 || bytes_of(buffer.item) > bytes_of(buffer_at(largest).item)) largest = i;
    }
    if (largest < 0) return;
    place(largest);
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

// A buffer of the main pass.
bool Plan::is_alive(int32_t entry, int32_t op) const {
  const Buffer buffer = buffer_at(entry);
  if (buffer.pass != Pass::main || place_of(entry) == unplaced) return false;
  int32_t first, last;
  lifetime_of(buffer.item, &first, &last);
  return first <= op && op <= last;
}

// Where the next buffer that is alive at an op starts, from an offset on.
int32_t Plan::next_start(int32_t op, int32_t offset) const {
  int32_t next = bytes_;
  for (int32_t i = 0; i < entries(); ++i) {
    if (!is_alive(i, op) || place_of(i) + bytes_of(buffer_at(i).item) <= offset) continue;
    next = place_of(i) < next ? place_of(i) : next;
  }
  return next;
}

Plan::Gap Plan::gap(int32_t op) const {
  Gap largest = {0, next_start(op, 0)};
  for (int32_t i = 0; i < entries(); ++i) {
    if (!is_alive(i, op)) continue;
    const int32_t offset = place_of(i) + bytes_of(buffer_at(i).item);
    const int32_t bytes = next_start(op, offset) - offset;
    if (bytes > largest.bytes) largest = {offset, bytes};
  }
  return largest;
}

void Plan::widen(int32_t op, int32_t bytes) {
  if (gap(op).bytes >= bytes) return;
  int32_t end = 0;
  for (int32_t i = 0; i < entries(); ++i) {
    if (!is_alive(i, op)) continue;
    const int32_t own = place_of(i) + bytes_of(buffer_at(i).item);
    end = own > end ? own : end;
  }
  bytes_ = end + bytes > bytes_ ? end + bytes : bytes_;
}

bool Plan::is_free_of_overlaps() const {
  for (int32_t i = 0; i < entries(); ++i) {
    for (int32_t k = 0; k < i; ++k) {
      if (place_of(i) == unplaced || place_of(k) == unplaced) continue;
      if (overlap(i, k) && conflict(buffer_at(i), buffer_at(k))) return false;
    }
  }
  return true;
}

}  // namespace pmt
