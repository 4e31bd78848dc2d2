// A card for a training of random data, as `pmt export` writes it, made from the format's words alone;
// the host's results come from a trainer of the core.
#pragma once

#include <vector>

#include "core/card/card_format.hpp"
#include "core/train/trainer.hpp"
#include "tests/aligned_bytes.hpp"

namespace pmt::tests {

struct TrainingCard {
  TrainingCard(const AlignedBytes& image, const TrainerOptions& options, int32_t steps, int32_t save_interval,
               uint64_t seed);

  std::vector<uint8_t> blocks;
  CardHeader header = {};
  std::vector<int32_t> expected;  // weights and biases after the last step, layer by layer

 private:
  void add(CardSection* section, const std::vector<uint8_t>& bytes);
  void add_block(const uint8_t* bytes, size_t count);
};

}  // namespace pmt::tests
