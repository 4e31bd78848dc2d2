// Fuzzes the reader of .pmt images: whatever it accepts must be consistent and run inside its
// memory. The checksum is made right first, so that the other checks are what sees the bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tests/engine.hpp"
#include "tests/image_builder.hpp"
#include "tests/model_consistency.hpp"

using namespace pmt;
using namespace pmt::tests;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  AlignedBytes image(data, size);
  if (size >= sizeof(ImageHeader)) {
    image.set_word(offsetof(ImageHeader, image_bytes), static_cast<uint32_t>(size));
    seal(image);
  }
  Model model;
  if (!model.open(image.data(), image.size()).ok()) return 0;
  if (!is_consistent(model, image.size())) std::abort();
  if (!small_enough_to_run(model)) return 0;
  Engine engine(model);
  const std::vector<int8_t> input(static_cast<size_t>(element_count(model.input())), 7);
  engine.logits(input, size % 2 == 0);
  return 0;
}
