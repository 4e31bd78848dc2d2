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
// offset and size multiplied by their number, images of one tensor lie one behind another.
#pragma once

#include "core/model.hpp"

namespace pmt {

enum class Pass : int32_t { main = 0, query = 1 };
enum class QueryMemory : int32_t { shared = 0, apart = 1 };

class Plan {
 public:
  // `table` holds table_size(model) entries and outlives the plan. `layers` are the op indices to
  // train, ascending; none for inference alone.
  void make(const Model& model, const int32_t* layers, int32_t layer_count, QueryMemory memory, int32_t* table);

  static int32_t table_size(const Model& model) { return 4 * model.tensor_count(); }

  // Offset of a tensor, -1 where the pass has no such buffer. Apart, queries count from 0 again.
  int32_t offset(Pass pass, int32_t tensor) const { return table_[static_cast<int32_t>(pass) * tensors_ + tensor]; }
  int32_t size(int32_t tensor) const;
  QueryMemory query_memory() const { return memory_; }
  // Of the main pass; of everything where the queries share its memory.
  int32_t bytes() const { return bytes_; }
  // Apart: what a query that starts at op `first` needs.
  int32_t query_bytes(int32_t first) const;

  // First and last op at which a tensor is alive (the network's input lives from op 0).
  void lifetime(int32_t tensor, int32_t* first, int32_t* last) const;
  // Index of the op that makes a tensor, -1 for the network's input.
  int32_t producer(uint32_t tensor) const { return table_[2 * tensors_ + static_cast<int32_t>(tensor)]; }

  // True when no two conflicting buffers share a byte.
  bool is_free_of_overlaps() const;

 private:
  struct Buffer {
    Pass pass;
    int32_t tensor;
  };
  bool exists(const Buffer& buffer) const;
  bool conflict(const Buffer& a, const Buffer& b) const;
  bool overlap(const Buffer& a, const Buffer& b) const;
  void place(const Buffer& buffer);
  Buffer buffer_at(int32_t entry) const;

  const Model* model_ = nullptr;
  const int32_t* layers_ = nullptr;
  int32_t layer_count_ = 0;
  QueryMemory memory_ = QueryMemory::shared;
  int32_t* table_ = nullptr;  // offsets of main and query buffers, producers, last uses
  int32_t tensors_ = 0;
  int32_t bytes_ = 0;
};

}  // namespace pmt
