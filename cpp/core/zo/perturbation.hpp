// Rademacher perturbations, regenerated from their stream whenever they are needed, never stored.
#pragma once

#include <cstdint>

#include "core/base/random.hpp"
#include "core/base/words.hpp"
#include "core/kernels/table.hpp"

namespace pmt {

PMT_WORDS(Generator, philox, xorshift32);

// Reads a stream of signs in order.
class SignStream {
 public:
  SignStream(Generator generator, const StreamId& id);

  // Writes the next `count` signs, each -1 or +1.
  void next(const Kernels& kernels, int32_t count, int8_t* signs);

  // Goes on as if `count` signs had been read.
  void skip(int32_t count);

 private:
  void next_philox(const Kernels& kernels, int32_t count, int8_t* signs);
  void next_xorshift(int32_t count, int8_t* signs);

  Generator generator_;
  StreamId id_;
  uint32_t state_ = 0;     // XORShift32
  uint32_t position_ = 0;  // Philox: signs read so far
};

}  // namespace pmt
