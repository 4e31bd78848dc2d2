#include "core/net/segments.hpp"

#include "core/base/arithmetic.hpp"
#include "core/net/stream.hpp"

namespace pmt {
namespace {

constexpr int32_t most_streaming_ops = 256;
constexpr int32_t line_alignment = 16;

}  // namespace

void Segments::open(const Model& model, const int32_t* producers, const int32_t* last_uses, int32_t* table) {
  model_ = &model;
  producers_ = producers;
  last_uses_ = last_uses;
  table_ = table;
  ops_ = model.op_count();
  for (int32_t i = 0; i < ops_; ++i) set_alone(i);
}

void Segments::set_alone(int32_t op) {
  at(first, op) = op;
  at(last, op) = op;
  at(bands, op) = 0;
  at(lines, op) = 0;
}

bool Segments::set(int32_t begin, int32_t end, int32_t band) {
  int32_t rows[longest_stream];
  bool changed = false;
  count_line_rows(*model_, begin, end, band, rows);
  for (int32_t i = begin; i <= end; ++i) {
    at(first, i) = begin;
    at(last, i) = end;
    at(bands, i) = band;
    const int32_t held = i < end ? rows[i - begin] : 0;
    changed |= at(lines, i) != held;
    at(lines, i) = held;
  }
  return changed;
}

// Ops that compute rows from rows, whose results nobody else reads but the last one's. The network's
// last op is not among them: its accumulators are the logits.
bool Segments::can_stream(int32_t begin, int32_t end) const {
  if (end - begin >= longest_stream || end >= ops_ - 1) return false;
  for (int32_t i = begin; i <= end; ++i) {
    if (!streams_rows(model_->op(i))) return false;
    const int32_t used_by = last_uses_[model_->op(i).output];
    if (i < end && (used_by <= i || used_by > end)) return false;
  }
  return true;
}

bool Segments::choose(const StreamedOps* streams, int32_t count) {
  int32_t next = 0;
  for (int32_t i = 0; i < count; ++i) {
    const StreamedOps& stream = streams[i];
    const bool runs = stream.begin >= next && stream.end > stream.begin && stream.end < ops_;
    if (!runs || stream.band < 1 || stream.band > largest_band || !can_stream(stream.begin, stream.end)) return false;
    set(stream.begin, stream.end, stream.band);
    next = stream.end + 1;
  }
  return true;
}

bool Segments::trains(int32_t op, bool* nodes) const {
  for (int32_t i = 0; i < layers_.count; ++i) {
    if (layers_.ops[i] != op) continue;
    *nodes = layers_.perturbs_nodes[i] != 0;
    return true;
  }
  return false;
}

bool Segments::trains_any(int32_t begin, int32_t end) const {
  bool nodes = false;
  for (int32_t i = begin; i <= end; ++i) {
    if (trains(i, &nodes)) return true;
  }
  return false;
}

int32_t Segments::tensor_bytes(int32_t op, int32_t rows) const {
  const TensorRecord& out = model_->output_of(model_->op(op));
  return round_up(rows * out.width * out.channels, line_alignment);
}

// Bytes of the tensors from before an op that it or a later one reads.
void Segments::sum_outside() {
  for (int32_t op = 0; op < ops_; ++op) {
    int32_t bytes = 0;
    for (int32_t t = 0; t < model_->tensor_count(); ++t) {
      if (producers_[t] < op && last_uses_[t] >= op)
        bytes += round_up(element_count(model_->tensor(t)), line_alignment);
    }
    at(outside, op) = bytes;
  }
}

// Bytes alive while a segment runs.
int32_t Segments::alive(int32_t begin, int32_t end, int32_t band) const {
  int32_t bytes = at(outside, begin) + tensor_bytes(end, model_->output_of(model_->op(end)).height);
  if (begin == end) return bytes;
  int32_t rows[longest_stream];
  count_line_rows(*model_, begin, end, band, rows);
  for (int32_t i = begin; i < end; ++i) bytes += tensor_bytes(i, rows[i - begin]);
  return bytes;
}

// With a segment before those already chosen: the most bytes alive from it on, and the most that the
// main pass and queries that start in it or after it take together. Both count a tensor that is
// read across several segments in full on either side.
void Segments::weigh(int32_t begin, int32_t end, int32_t band, int32_t* most_alive, int32_t* peak_from) const {
  const bool final = end == ops_ - 1;
  const int32_t own = alive(begin, end, band), behind = final ? 0 : at(most, end + 1);
  *most_alive = larger(own, behind);
  *peak_from = larger(own, final ? 0 : at(peak, end + 1));
  bool nodes = false;
  if (begin == end && trains(begin, &nodes) && nodes) {
    const int32_t copy = tensor_bytes(end, model_->output_of(model_->op(end)).height);
    const int32_t kept = final ? copy : at(outside, end + 1);
    *peak_from = larger(*peak_from, kept + larger(copy, behind));
  } else if (trains_any(begin, end)) {
    *peak_from = larger(*peak_from, at(outside, begin) + behind);
  }
}

void Segments::choose(const Layers& layers) {
  layers_ = layers;
  if (ops_ > most_streaming_ops) return;
  sum_outside();
  for (int32_t begin = ops_ - 1; begin >= 0; --begin) {
    int32_t best = begin;
    weigh(begin, begin, 0, &at(most, begin), &at(peak, begin));
    for (int32_t end = begin + 1; end < ops_ && end - begin < longest_stream; ++end) {
      if (!can_stream(begin, end)) continue;
      int32_t most_alive, peak_from;
      weigh(begin, end, 1, &most_alive, &peak_from);
      const bool better = peak_from < at(peak, begin) || (peak_from == at(peak, begin) && most_alive < at(most, begin));
      if (!better) continue;
      best = end;
      at(most, begin) = most_alive;
      at(peak, begin) = peak_from;
    }
    at(last, begin) = best;
  }
  for (int32_t begin = 0; begin < ops_;) {
    const int32_t end = at(last, begin);
    if (end > begin) {
      set(begin, end, 1);
    } else {
      set_alone(begin);
    }
    begin = end + 1;
  }
}

}  // namespace pmt
