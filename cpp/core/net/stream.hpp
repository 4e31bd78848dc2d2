// A run of ops that goes through line buffers: band by band of the last op's rows, every op computes
// just the rows that the ones after it need next, and keeps those that they need again. So none of the
// tensors between exists whole. Every row is computed once, in order: the bytes are those of the ops run
// one after another.
#pragma once

#include "core/net/network.hpp"

namespace pmt {

constexpr int32_t longest_stream = 12;

// Ops whose output's rows depend on some rows of their inputs alone.
bool streams_rows(const OpRecord& op);

// Input rows first .. end-1 under an op's output rows; of a window, without its padding.
struct RowRange {
  int32_t first, end;
};
RowRange input_rows(const Model& model, const OpRecord& op, const RowRange& rows);

// The op on these rows alone: as a layer of its own.
OpShape shape_of_rows(const Model& model, const OpRecord& op, const RowRange& rows);

// Which rows are computed when, for ops begin .. end.
class Stream {
 public:
  // `band`: rows of the last op's output at once. Its earlier rows stay where `keeps` is set.
  Stream(const Model& model, int32_t begin, int32_t end, int32_t band, bool keeps);

  // Goes to the next band; false when all rows are done.
  bool next();

  // The present band, op by op in order: rows to compute, and the first row that is held once they are;
  // the rows before it are dropped first.
  RowRange rows(int32_t op) const { return {steps_[op - begin_].done, steps_[op - begin_].need}; }
  int32_t held_from(int32_t op) const { return steps_[op - begin_].held; }
  int32_t held_before(int32_t op) const { return steps_[op - begin_].held_before; }
  // Marks the op's rows as computed.
  void finish(int32_t op) { steps_[op - begin_].done = steps_[op - begin_].need; }
  bool holds(uint32_t tensor, int32_t* op) const;

 private:
  struct Step {
    int32_t done, need, held, held_before;
  };
  int32_t height(int32_t op) const { return model_.output_of(model_.op(op)).height; }
  bool reads(int32_t reader, int32_t op) const;
  int32_t rows_needed(int32_t op) const;
  int32_t first_needed(int32_t op) const;

  const Model& model_;
  int32_t begin_, end_, band_;
  bool keeps_;
  Step steps_[longest_stream];
};

// Rows of line buffer that an op's output takes, at most, over streams from begin to end, or, for the
// gradient of an op between, to that op.
void count_line_rows(const Model& model, int32_t begin, int32_t end, int32_t band, int32_t* rows);

}  // namespace pmt
