// Which runs of a network's ops stream through line buffers, so that the most memory that is alive at
// once, in the main pass or while a layer is queried, is as small as can be.
#pragma once

#include "core/image/model.hpp"

namespace pmt {

constexpr int32_t largest_band = 16;

// Ops begin .. end that stream, and how many rows of the last one's output at once.
struct StreamedOps {
  int32_t begin, end, band;
};

class Segments {
 public:
  struct Layers {
    const int32_t* ops;             // ascending
    const int32_t* perturbs_nodes;  // 1 where queries start from the layer's output
    int32_t count;
  };

  static int32_t table_size(const Model& model) { return fields * model.op_count(); }

  // Entries of the table that choose() alone uses, the last ones.
  static int32_t spare_size(const Model& model) { return (fields - outside) * model.op_count(); }
  int32_t* spare() const { return table_ + outside * ops_; }

  // Every op alone. `producers` and `last_uses` are of the tensors; all outlive the segments.
  void open(const Model& model, const int32_t* producers, const int32_t* last_uses, int32_t* table);

  // From the last op to the first, the run from an op on that needs the least. Networks of more than
  // 256 ops do not stream.
  void choose(const Layers& layers);

  // Lets these stream, ascending; false, and not all of them do, where one cannot.
  bool choose(const StreamedOps* streams, int32_t count);

  // Lets ops begin .. end stream, or every op of a segment be alone. Whether a line buffer has other rows than
  // before.
  bool set(int32_t begin, int32_t end, int32_t band);
  void set_alone(int32_t op);

  int32_t begin(int32_t op) const { return at(first, op); }
  int32_t end(int32_t op) const { return at(last, op); }
  bool streams(int32_t op) const { return begin(op) < end(op); }
  // Rows of the last op's output at once.
  int32_t band(int32_t op) const { return at(bands, op); }
  // Rows that are there of the output of an op, `height` where it is whole.
  int32_t rows(int32_t op, int32_t height) const { return op < 0 || at(lines, op) == 0 ? height : at(lines, op); }

 private:
  enum Field { first, last, bands, lines, outside, most, peak, fields };  // choose() alone: from outside on

  int32_t& at(Field field, int32_t op) { return table_[field * ops_ + op]; }
  int32_t at(Field field, int32_t op) const { return table_[field * ops_ + op]; }
  bool can_stream(int32_t begin, int32_t end) const;
  bool trains(int32_t op, bool* nodes) const;
  bool trains_any(int32_t begin, int32_t end) const;
  int32_t tensor_bytes(int32_t op, int32_t rows) const;
  int32_t alive(int32_t begin, int32_t end, int32_t band) const;
  void sum_outside();
  void weigh(int32_t begin, int32_t end, int32_t band, int32_t* most_alive, int32_t* peak_from) const;

  const Model* model_ = nullptr;
  const int32_t* producers_ = nullptr;
  const int32_t* last_uses_ = nullptr;
  int32_t* table_ = nullptr;
  int32_t ops_ = 0;
  Layers layers_ = {nullptr, nullptr, 0};
};

}  // namespace pmt
