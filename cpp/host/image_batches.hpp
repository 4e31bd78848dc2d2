// How inference takes many images: few at once through the ops up to a cut, whose activations are large; many through
// those from it on, whose weights are, so that what is read of them serves all.
#pragma once

#include "core/base/arena.hpp"
#include "core/net/forward.hpp"

namespace pmt::host {

class ImageBatches {
 public:
  // For `count` images on a number of threads, through ops 0 .. end - 1.
  ImageBatches(const Network& network, const Plan& plan, int32_t count, int32_t threads, int32_t end);

  struct Memory {
    Activations few, many;  // up to the cut, and from it on
  };
  Memory take(Arena& arena) const;

  // Images at once.
  int32_t images() const { return many_; }
  int32_t images_of(int32_t op) const { return op < cut_ ? few_ : many_; }
  // The first op of the many; 0: all are.
  int32_t cut() const { return cut_; }

  // Runs ops 0 .. end - 1 on `count` images, at most images(), into memory.many.
  void run(const Memory& memory, const int8_t* images, int32_t count, int32_t end) const;

  // The steps of run(). Images first .. first + part - 1 of `count` pass the cut.
  void put(const Activations& memory, const int8_t* images, int32_t count) const;
  void pass_cut(const Memory& memory, int32_t first, int32_t part, int32_t count) const;

 private:
  bool passes_alone(int32_t op, uint32_t* tensor) const;
  int32_t bytes_from(int32_t op, uint32_t passing) const;

  const Network& network_;
  const Plan& plan_;
  int32_t few_, many_, cut_ = 0;
  int32_t bytes_;         // of an image from the cut on
  uint32_t passing_ = 0;  // the only tensor that is alive across the cut
};

}  // namespace pmt::host
