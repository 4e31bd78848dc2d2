// How a plan gives its buffers their places: the largest first, each at the lowest offset that is free of
// conflicts. In a compact plan, buffers are compared with those near them in time alone, so that the time
// grows about linearly with the number of ops.
#include "core/base/arithmetic.hpp"
#include "core/net/plan.hpp"

namespace pmt {
namespace {

constexpr Pass passes[] = {Pass::main, Pass::query};

}  // namespace

Plan::Life Plan::life_of(int32_t item) const {
  if (item >= tensors_) {
    const int32_t op = item == tile() ? queried_ : item - tensors_;
    return {segments_.begin(op), segments_.end(op)};
  }
  Life life;
  lifetime(item, &life.first, &life.last);
  return life;
}

// Scratch is there once a segment, as large as any of its ops needs it.
bool Plan::exists(const Buffer& buffer) const {
  if (buffer.item == tile()) return buffer.pass == Pass::query && sizes()[tile()] > 0;
  const bool scratch = buffer.item >= tensors_;
  const int32_t made_by = scratch ? buffer.item - tensors_ : producers()[buffer.item];
  if (scratch && (!is_compact() || segments_.begin(made_by) != made_by)) return false;
  return buffer.pass == Pass::main || (queried_ >= 0 && made_by >= query_start(queried_));
}

// Whether a layer is queried that comes at `first` or later, and at `last` at the latest.
bool Plan::queries_between(int32_t first, int32_t last) const {
  int32_t low = 0, high = layer_count_;
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    if (layers_[middle] < first) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < layer_count_ && layers_[low] <= last;
}

bool Plan::lives_during(int32_t item, const Life& life) const {
  const Life own = life_of(item);
  return own.first <= life.last && life.first <= own.last;
}

bool Plan::conflict(const Buffer& a, const Buffer& b) const {
  if (a.pass == b.pass) return lives_during(a.item, life_of(b.item));
  if (a.pass == Pass::query) return conflict(b, a);
  if (is_compact()) return kept(a.item, queried_);
  const Life life = life_of(a.item);
  return memory_ == QueryMemory::shared && queries_between(life.first, smaller(life.last, life_of(b.item).first));
}

bool Plan::overlap(const Buffer& a, const Buffer& b) const {
  const int32_t a_begin = offsets(a.pass)[a.item], b_begin = offsets(b.pass)[b.item];
  return a_begin < b_begin + sizes()[b.item] && b_begin < a_begin + sizes()[a.item];
}

void Plan::list_items() {
  for (int32_t i = 0; i < listed(); ++i) by_size()[i] = i;
}

// Insertion sort: between two plans of a search few sizes change.
void Plan::sort_items() {
  int32_t* list = by_size();
  const auto before = [&](int32_t a, int32_t b) { return sizes()[a] != sizes()[b] ? sizes()[a] > sizes()[b] : a < b; };
  for (int32_t i = 1; i < listed(); ++i) {
    const int32_t item = list[i];
    int32_t place = i;
    for (; place > 0 && before(item, list[place - 1]); --place) list[place] = list[place - 1];
    list[place] = item;
  }
}

// Moves the candidate past a conflicting buffer.
void Plan::step_over(const Table& table, int32_t item, Candidate* candidate) const {
  const int32_t begin = table.offsets[item], end = begin + table.sizes[item];
  if (begin < 0 || begin >= candidate->place + candidate->bytes || end <= candidate->place) return;
  const bool same = table.pass == candidate->buffer.pass;
  if (same ? lives_during(item, candidate->life) : conflict(candidate->buffer, {table.pass, item})) {
    candidate->place = end;
  }
}

void Plan::step_over_all(Candidate* candidate) const {
  for (const Pass pass : passes) {
    const Table table = table_of(pass);
    for (int32_t i = 0; i < items(); ++i) step_over(table, i, candidate);
  }
}

// In a compact plan: buffers alive with this one in the same pass, and those the main pass keeps for a query.
void Plan::step_over_neighbors(Candidate* candidate) const {
  const Table main = table_of(Pass::main), own = table_of(candidate->buffer.pass);
  const Life life = candidate->life;
  int32_t begin = earliest_alive(life.first);
  if (own.pass == Pass::query) {
    begin = larger(begin, query_start(queried_));
    for (int32_t i = kept_; i >= 0; i = next_kept(i)) step_over(main, i, candidate);
    step_over(main, output_of(queried_), candidate);
    step_over(own, tile(), candidate);
  } else if (life.first <= input_last_) {
    for (int32_t i = 0; i < tensors_; ++i) {
      if (producers()[i] < 0) step_over(main, i, candidate);
    }
  }
  const int32_t end = smaller(life.last, model_->op_count() - 1);
  for (int32_t op = begin; op <= end; ++op) step_over(own, output_of(op), candidate);
  for (int32_t op = life.first; op <= end; ++op) step_over(own, tensors_ + op, candidate);
}

void Plan::place(const Buffer& buffer) {
  const int32_t bytes = sizes()[buffer.item];
  Candidate candidate = {buffer, life_of(buffer.item), bytes, 0};
  for (int32_t before = -1; bytes > 0 && candidate.place != before;) {
    before = candidate.place;
    if (is_compact()) {
      step_over_neighbors(&candidate);
    } else {
      step_over_all(&candidate);
    }
  }
  const int32_t place = candidate.place;
  offsets(buffer.pass)[buffer.item] = place;
  if (buffer.pass == Pass::query && memory_ == QueryMemory::apart) return;
  bytes_ = larger(bytes_, place + bytes);
}

// Equal sizes: the main pass first, then by item. Other plans than compact ones place both passes
// together.
void Plan::place_largest_first(Pass only) {
  bool tile_waits = only == Pass::query && exists({Pass::query, tile()});
  for (int32_t begin = 0, end; begin < listed(); begin = end) {
    const int32_t bytes = sizes()[by_size()[begin]];
    for (end = begin; end < listed() && sizes()[by_size()[end]] == bytes;) ++end;
    if (tile_waits && sizes()[tile()] > bytes) {
      place({Pass::query, tile()});
      tile_waits = false;
    }
    for (const Pass pass : passes) {
      if (is_compact() && pass != only) continue;
      for (int32_t i = begin; i < end; ++i) {
        if (exists({pass, by_size()[i]})) place({pass, by_size()[i]});
      }
    }
  }
  if (tile_waits) place({Pass::query, tile()});
}

void Plan::place_queries(int32_t layer) {
  if (!is_compact()) return;
  queried_ = layer;
  queried_end_ = main_end(layer);
  sizes()[tile()] = tile_of(layer);
  clear(Pass::query);
  list_kept();
  place_largest_first(Pass::query);
  for (int32_t i = kept_; i >= 0;) {
    const int32_t next = next_kept(i);
    offsets(Pass::query)[i] = unplaced;
    i = next;
  }
}

// A tensor from before the queries has no place in them: there stands which is the next to be kept.
void Plan::list_kept() {
  kept_ = -1;
  for (int32_t i = tensors_ - 1; i >= 0; --i) {
    if (producers()[i] >= query_start(queried_) || !kept(i, queried_)) continue;
    offsets(Pass::query)[i] = -2 - kept_;
    kept_ = i;
  }
}

void Plan::clear(Pass pass) {
  for (int32_t i = 0; i < items(); ++i) offsets(pass)[i] = unplaced;
}

// Gives up, with false, once it takes more than `most` bytes.
bool Plan::place_all(int32_t most) {
  bytes_ = 0;
  size_all();
  sort_items();
  measure_lives();
  clear(Pass::main);
  clear(Pass::query);
  place_largest_first(Pass::main);
  for (int32_t i = 0; is_compact() && i < layer_count_ && bytes_ <= most; ++i) place_queries(layers_[i]);
  return bytes_ <= most;
}

// For each op, finds the first one whose tensor is still alive there.
void Plan::measure_lives() {
  input_last_ = life_of(static_cast<int32_t>(model_->header().input_tensor)).last;
  for (int32_t op = 1, earliest = 0; op < model_->op_count(); ++op) {
    while (life_of(output_of(earliest)).last < op) ++earliest;
    earliest_alive()[op - 1] = earliest;
  }
}

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
