#include "core/net/stream.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {

bool streams_rows(const OpRecord& op) { return definition_of(op.kind)->streams_rows; }

RowRange input_rows(const Model& model, const OpRecord& op, const RowRange& rows) {
  if (!definition_of(op.kind)->has_window) return rows;
  const int32_t top = rows.first * op.stride_h - op.pad_top;
  const int32_t bottom = (rows.end - 1) * op.stride_h - op.pad_top + op.kernel_h;
  return {larger(top, 0), smaller(bottom, model.input_of(op).height)};
}

OpShape shape_of_rows(const Model& model, const OpRecord& op, const RowRange& rows) {
  OpShape shape = op_shape(model, op);
  const RowRange in = input_rows(model, op, rows);
  shape.in.height = in.end - in.first;
  shape.out.height = rows.end - rows.first;
  if (definition_of(op.kind)->has_window) shape.window.pad_top = in.first - (rows.first * op.stride_h - op.pad_top);
  return shape;
}

Stream::Stream(const Model& model, int32_t begin, int32_t end, int32_t band, bool keeps)
    : model_(model), begin_(begin), end_(end), band_(band), keeps_(keeps), steps_() {}

bool Stream::reads(int32_t reader, int32_t op) const {
  const OpRecord& record = model_.op(reader);
  const uint32_t output = model_.op(op).output;
  return record.input[0] == output || record.input[1] == output;
}

// Rows of an op that the readers' next rows take.
int32_t Stream::rows_needed(int32_t op) const {
  int32_t need = steps_[op - begin_].done;
  for (int32_t reader = op + 1; reader <= end_; ++reader) {
    const Step& step = steps_[reader - begin_];
    if (step.need == step.done || !reads(reader, op)) continue;
    need = larger(need, input_rows(model_, model_.op(reader), {step.done, step.need}).end);
  }
  return need;
}

// The first row of an op that a reader still takes.
int32_t Stream::first_needed(int32_t op) const {
  int32_t first = steps_[op - begin_].done;
  for (int32_t reader = op + 1; reader <= end_; ++reader) {
    const Step& step = steps_[reader - begin_];
    if (step.done == height(reader) || !reads(reader, op)) continue;
    first = smaller(first, input_rows(model_, model_.op(reader), {step.done, step.done + 1}).first);
  }
  return first;
}

bool Stream::next() {
  Step& last = steps_[end_ - begin_];
  if (last.done == height(end_)) return false;
  last.need = smaller(last.done + band_, height(end_));
  const bool final = last.need == height(end_);
  for (int32_t op = end_ - 1; op >= begin_; --op) {  // at last, rows that nobody reads, too
    steps_[op - begin_].need = final ? height(op) : rows_needed(op);
  }
  for (int32_t op = begin_; op <= end_; ++op) {
    Step& step = steps_[op - begin_];
    step.held_before = step.held;
    step.held = op == end_ ? (keeps_ ? 0 : step.done) : first_needed(op);
  }
  return true;
}

bool Stream::holds(uint32_t tensor, int32_t* op) const {
  for (int32_t i = begin_; i <= end_; ++i) {
    if (model_.op(i).output != tensor) continue;
    *op = i;
    return true;
  }
  return false;
}

void count_line_rows(const Model& model, int32_t begin, int32_t end, int32_t band, int32_t* rows) {
  for (int32_t i = 0; i <= end - begin; ++i) rows[i] = 0;
  for (int32_t last = begin; last <= end; ++last) {
    Stream stream(model, begin, last, last == end ? band : 1, last == end);
    while (stream.next()) {
      for (int32_t op = begin; op <= last; ++op) {
        rows[op - begin] = larger(rows[op - begin], stream.rows(op).end - stream.held_from(op));
        stream.finish(op);
      }
    }
  }
}

}  // namespace pmt
