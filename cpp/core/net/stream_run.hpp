// Runs a stream on a plan's line buffers.
#pragma once

#include "core/net/forward.hpp"
#include "core/net/stream.hpp"

namespace pmt {

// Where a stream finds its tensors: those of a query from op `first` on, or of the main pass (first = 0
// and Pass::main).
struct StreamPlace {
  Pass pass;
  int32_t first;
};

inline int8_t* stream_tensor(const Plan& plan, const Activations& memory, const StreamPlace& place, uint32_t tensor) {
  const bool own = place.pass == Pass::main || plan.producer(tensor) >= place.first;
  return memory.tensor(plan, own ? place.pass : Pass::main, tensor);
}

// Calls run(op, images) for every band of every op, in order, with `images` of one image: the rows of the
// output to be computed, and the input under them. `last`: where the stream ends, the segment's end or,
// for its own rows' sake, an op before.
template <typename Run>
void run_stream(const Model& model, const Plan& plan, const Activations& memory, const StreamPlace& place,
                int32_t begin, int32_t last, Run run) {
  const bool whole = last == plan.segment_end(begin);
  Stream stream(model, begin, last, whole ? plan.band(begin) : 1, whole);
  const auto row_bytes = [&](uint32_t tensor) {
    const TensorRecord& record = model.tensor(static_cast<int32_t>(tensor));
    return record.width * record.channels;
  };
  while (stream.next()) {
    for (int32_t i = begin; i <= last; ++i) {
      const OpRecord& op = model.op(i);
      const RowRange rows = stream.rows(i);
      int8_t* buffer = stream_tensor(plan, memory, place, op.output);
      const int32_t row = row_bytes(op.output), held = stream.held_from(i), before = stream.held_before(i);
      if (held > before) {
        __builtin_memmove(buffer, buffer + (held - before) * row, static_cast<uint32_t>((rows.first - held) * row));
      }
      if (rows.end == rows.first) continue;
      OpImages images = {
          1, {nullptr, nullptr}, {0, 0}, buffer + (rows.first - held) * row, 0, shape_of_rows(model, op, rows)};
      const RowRange under = input_rows(model, op, rows);
      for (int k = 0; k < 2; ++k) {
        if (op.input[k] == no_tensor) continue;
        int32_t maker = 0;
        const int32_t from = stream.holds(op.input[k], &maker) ? stream.held_from(maker) : 0;
        images.input[k] =
            stream_tensor(plan, memory, place, op.input[k]) + (under.first - from) * row_bytes(op.input[k]);
      }
      run(i, images);
      stream.finish(i);
    }
  }
}

// Runs the segment of the main pass that begins with an op, on one image, and calls visit(op, rows,
// bytes) for all rows of each op's output, in order.
template <typename Visit>
void forward_rows(const Network& network, const Plan& plan, const Activations& memory, int32_t begin, Visit visit) {
  const Model& model = *network.model;
  if (!plan.streams(begin)) {
    forward(network, plan, memory, 1, begin, begin + 1);
    const OpRecord& op = model.op(begin);
    visit(begin, memory.tensor(plan, Pass::main, op.output), element_count(model.output_of(op)));
    return;
  }
  run_stream(model, plan, memory, {Pass::main, 0}, begin, plan.segment_end(begin),
             [&](int32_t op, const OpImages& rows) {
               run_op(network, op, rows, memory.scratch_of(plan, Pass::main, op));
               const Shape& out = rows.shape.out;
               visit(op, rows.output, out.height * out.width * out.channels);
             });
}

}  // namespace pmt
