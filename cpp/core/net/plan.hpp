// Where every activation lives in a worker's memory, decided ahead.
//
// A forward pass keeps a tensor from the op that makes it to the last op that reads it. Training
// adds the queries: while layer k is queried, everything that is alive at op k (its input, its
// output, the skip connections around it) must stay, and the perturbed suffix k..end runs beside
// it in buffers of its own. Hence a tensor can have two places: one in the main pass, one in the
// queries. Two buffers conflict when
//   - both belong to the main pass, or both to a query, and their lifetimes overlap; or
//   - one belongs to a query of a layer k at which the other, of the main pass, is alive.
// Buffers are placed by size, largest first, each at the lowest offset free of conflicts.
//
// A device runs one query at a time, in the gaps of the main pass (QueryMemory::shared). A host runs
// several in memory of their own (QueryMemory::apart), where only the first rule holds: with every
// offset and size multiplied by their number, images of one tensor lie one after another.
//
// A compact plan takes less. The main pass has come as far as a query needs and no further; the queries
// of every layer have places of their own, found again when its turn comes; and runs of ops (segments)
// go through line buffers, see stream.hpp, where that lowers the peak. What a segment makes and reads is
// alive throughout it. A query of a layer inside begins with the segment.
#pragma once

#include "core/net/segments.hpp"

namespace pmt {

enum class Pass : int32_t { main = 0, query = 1 };
enum class QueryMemory : int32_t { shared = 0, apart = 1 };

class Plan {
 public:
  // `table` holds table_size(model) entries and outlives the plan. `layers` are the op indices to
  // train, ascending; none for inference alone.
  void make(const Model& model, const int32_t* layers, int32_t layer_count, QueryMemory memory, int32_t* table);

  // Shared memory, as little as there is a plan for.
  struct Compact {
    const int32_t* perturbs_nodes;  // of each layer, 1 where queries start from its output, 0: from its input
    const int32_t* scratch_bytes;   // of each op, what it needs beside its tensors
    const int32_t* tile_bytes;      // of each layer, perturbed weights at once; all of them where it streams
    bool streams;                   // whether segments may stream
    // Which do, found before by a plan for the same; null: they are searched for, which takes as long as
    // some hundred plans.
    const StreamedOps* chosen = nullptr;
    int32_t chosen_count = 0;
  };
  // Fails where chosen ops cannot stream.
  Status make_compact(const Model& model, const int32_t* layers, int32_t layer_count, const Compact& compact,
                      int32_t* table);

  static int32_t table_size(const Model& model) {
    return 5 * model.tensor_count() + 3 * (model.op_count() + 1) + Segments::table_size(model) + beyond_spare(model);
  }

  // Compact: gives the tensors of a layer's queries their places, in which those of other layers' were.
  void place_queries(int32_t layer);

  // Segments: an op alone, or several that stream.
  int32_t segment_begin(int32_t op) const { return segments_.begin(op); }
  int32_t segment_end(int32_t op) const { return segments_.end(op); }
  bool streams(int32_t op) const { return segments_.streams(op); }
  int32_t band(int32_t op) const { return segments_.band(op); }

  // The first op that a layer's queries run, and the op up to which the main pass must have come.
  int32_t query_start(int32_t layer) const { return segments_.begin(layer); }
  int32_t main_end(int32_t layer) const;

  // Offset of a tensor, -1 where the pass has no such buffer. Apart, queries count from 0 again.
  int32_t offset(Pass pass, int32_t tensor) const { return offsets(pass)[tensor]; }
  int32_t size(int32_t tensor) const { return sizes()[tensor]; }
  // Compact: where an op's scratch is, shared by its segment.
  int32_t scratch_offset(Pass pass, int32_t op) const { return offsets(pass)[tensors_ + segments_.begin(op)]; }
  int32_t scratch_size(int32_t op) const { return sizes()[tensors_ + op]; }
  // Compact: where perturbed weights of the layer are whose queries have a place; -1 where it has none.
  int32_t tile_offset() const { return is_compact() ? offsets(Pass::query)[tile()] : -1; }
  int32_t tile_size() const { return sizes()[tile()]; }
  bool is_compact() const { return perturbs_nodes_ != nullptr; }
  QueryMemory query_memory() const { return memory_; }
  // Memory of the main pass; of everything where the queries share it.
  int32_t bytes() const { return bytes_; }
  // Apart: what a query that starts at op `first` needs.
  int32_t query_bytes(int32_t first) const;

  // First and last op at which a tensor is alive (the network's input lives from op 0).
  void lifetime(int32_t tensor, int32_t* first, int32_t* last) const {
    const int32_t made_by = producers()[tensor], used_by = last_uses()[tensor];
    const int32_t last_op = used_by < made_by ? made_by : used_by;
    *first = made_by < 0 ? 0 : segments_.begin(made_by);
    *last = last_op < 0 ? 0 : (last_op < model_->op_count() ? segments_.end(last_op) : last_op);
  }
  // Index of the op that makes a tensor, -1 for the network's input.
  int32_t producer(uint32_t tensor) const { return producers()[tensor]; }
  // Index of the last op that reads a tensor; the number of ops for the network's output.
  int32_t last_use(uint32_t tensor) const { return last_uses()[tensor]; }

  // The largest part of [0, bytes()) that no tensor of the main pass uses which is alive at an op. Bytes.
  struct Gap {
    int32_t offset, bytes;
  };
  Gap gap(int32_t op) const;
  // Makes bytes() large enough for a gap of that size at an op.
  void widen(int32_t op, int32_t bytes);
  // Makes bytes() at least that large.
  void reserve(int32_t bytes);

  // Whether a tensor of the main pass outlives a layer's queries.
  bool kept(int32_t item, int32_t layer) const;

  // True when no two conflicting buffers share a byte.
  bool is_free_of_overlaps() const;

 private:
  static constexpr int32_t unplaced = -1;  // an offset

  struct Buffer {
    Pass pass;
    int32_t item;  // a tensor, after them the scratch of an op, or the tile
  };
  struct Life {  // ops
    int32_t first, last;
  };
  struct Table {
    Pass pass;
    const int32_t *offsets, *sizes;
  };
  struct Candidate {
    Buffer buffer;
    Life life;
    int32_t bytes, place;
  };
  // The table: offsets in the main pass and in queries, and bytes, of every item; producers and last uses
  // of the tensors; segments.
  int32_t items() const { return tile() + 1; }
  int32_t tile() const { return tensors_ + model_->op_count(); }
  int32_t* offsets(Pass pass) const { return table_ + static_cast<int32_t>(pass) * items(); }
  int32_t* sizes() const { return table_ + 2 * items(); }
  int32_t* producers() const { return table_ + 3 * items(); }
  int32_t* last_uses() const { return producers() + tensors_; }
  // In what is spare of the segments: tensors and scratch, the largest first, then of each op but the first
  // the earliest whose tensor is still alive there. With tensors that nobody makes or reads it takes more.
  int32_t listed() const { return tile(); }
  int32_t* by_size() const { return segments_.spare(); }
  int32_t* earliest_alive() const { return by_size() + listed(); }
  int32_t earliest_alive(int32_t op) const { return op == 0 ? 0 : earliest_alive()[op - 1]; }
  static int32_t beyond_spare(const Model& model) {
    const int32_t needed = model.tensor_count() + 2 * model.op_count() - 1, spare = Segments::spare_size(model);
    return needed > spare ? needed - spare : 0;
  }
  int32_t output_of(int32_t op) const { return static_cast<int32_t>(model_->op(op).output); }

  void start(const Model& model, const int32_t* layers, int32_t layer_count, QueryMemory memory, int32_t* table);
  void search();
  bool leave_alone(int32_t begin, int32_t end, int32_t* least);
  void widen_band(int32_t begin, int32_t end, int32_t* least);
  void size_all();
  int32_t tile_of(int32_t layer) const;

  // Placement.
  bool place_all(int32_t most);
  void list_items();
  void sort_items();
  void measure_lives();
  void clear(Pass pass);
  void list_kept();
  int32_t next_kept(int32_t tensor) const { return -2 - offsets(Pass::query)[tensor]; }
  void place_largest_first(Pass only);
  void place(const Buffer& buffer);
  Table table_of(Pass pass) const { return {pass, offsets(pass), sizes()}; }
  void step_over(const Table& table, int32_t item, Candidate* candidate) const;
  void step_over_all(Candidate* candidate) const;
  void step_over_neighbors(Candidate* candidate) const;
  bool exists(const Buffer& buffer) const;
  Life life_of(int32_t item) const;
  bool lives_during(int32_t item, const Life& life) const;
  bool queries_between(int32_t first, int32_t last) const;
  bool conflict(const Buffer& a, const Buffer& b) const;
  bool overlap(const Buffer& a, const Buffer& b) const;

  bool is_alive(int32_t item, int32_t op) const;
  int32_t next_start(int32_t op, int32_t offset) const;

  const Model* model_ = nullptr;
  const int32_t* layers_ = nullptr;
  int32_t layer_count_ = 0;
  QueryMemory memory_ = QueryMemory::shared;
  int32_t* table_ = nullptr;
  const int32_t* perturbs_nodes_ = nullptr;  // of a compact plan
  const int32_t* scratch_bytes_ = nullptr;
  const int32_t* tile_bytes_ = nullptr;
  Segments segments_;
  int32_t queried_ = -1;      // compact: the layer whose queries have a place
  int32_t queried_end_ = -1;  // its main_end()
  int32_t kept_ = -1;         // while queries are placed, a tensor that the main pass keeps for them
  int32_t input_last_ = 0;    // the op that reads the network's input last
  int32_t tensors_ = 0;
  int32_t bytes_ = 0;
};

}  // namespace pmt
