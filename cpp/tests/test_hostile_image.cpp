// Damaged and hostile images: refused, or safe to run. Out-of-range reads are for the sanitizers to
// find: images and arenas have exactly their sizes.
#include <doctest/doctest.h>

#include <cstddef>

#include "tests/engine.hpp"
#include "tests/model_consistency.hpp"
#include "tests/random_network.hpp"
#include "tests/random_options.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

// Two steps with any options: scales at their bounds meet every estimator, scaling and rounding.
void train(RandomSource& random, const Model& model) {
  const std::vector<int32_t> layers = trainable_layers(model);
  if (layers.empty()) return;
  TrainerOptions options = random_options(random);
  options.mu_weight = options.mu_node = random.pick<int32_t>({1, 64});
  TrainingRun run(model, options, layers, 2, sequential_executor());
  CHECK(run.train(random_samples(random, model, 2), 2, random.pick<float>({1e-30f, 1.0f, 3e38f})).ok());
}

struct Verdict {
  int32_t opened = 0, inconsistent = 0;
};

// Opens an image; whatever is accepted must be consistent and run inside its memory.
void judge(RandomSource& random, const AlignedBytes& image, Verdict& verdict) {
  Model model;
  if (!model.open(image.data(), image.size()).ok()) return;
  ++verdict.opened;
  if (!is_consistent(model, image.size())) {
    ++verdict.inconsistent;
    return;
  }
  if (!small_enough_to_run(model)) return;
  Engine engine(model);
  engine.logits(random.bytes(element_count(model.input())), random.chance(2));
  if (random.chance(4)) train(random, model);
}

AlignedBytes sample_image(RandomSource& random) {
  const Head head = random.pick<Head>({Head::fully_connected, Head::conv2d, Head::pool});
  return random_network(random, random.integer(1, 6), head);
}

// Offsets of all 32-bit fields of the header and of the records.
std::vector<size_t> field_offsets(const AlignedBytes& image) {
  std::vector<size_t> offsets;
  const auto add = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i += 4) offsets.push_back(i);
  };
  add(16, sizeof(ImageHeader));
  const size_t sections[] = {offsetof(ImageHeader, tensors), offsetof(ImageHeader, ops), offsetof(ImageHeader, blocks),
                             offsetof(ImageHeader, block_layers)};
  const size_t sizes[] = {sizeof(TensorRecord), sizeof(OpRecord), sizeof(BlockRecord), 4};
  for (int i = 0; i < 4; ++i) {
    const size_t start = image.word(sections[i]);
    add(start, start + image.word(sections[i] + 4) * sizes[i]);
  }
  return offsets;
}

}  // namespace

TEST_CASE("an image cut at any byte is refused") {
  RandomSource random(17);
  for (int i = 0; i < 3; ++i) {
    const AlignedBytes image = sample_image(random);
    int32_t opened = 0;
    for (size_t size = 0; size < image.size(); ++size) {
      const AlignedBytes cut(image.data(), size);
      Model model;
      opened += model.open(cut.data(), cut.size()).ok();
    }
    CHECK(opened == 0);
  }
}

TEST_CASE("an image cut at any byte whose header and checksum agree with the cut is refused or safe") {
  RandomSource random(18);
  Verdict verdict;
  for (int i = 0; i < 3; ++i) {
    const AlignedBytes image = sample_image(random);
    for (size_t size = sizeof(ImageHeader); size < image.size(); ++size) {
      AlignedBytes cut(image.data(), size);
      cut.set_word(offsetof(ImageHeader, image_bytes), static_cast<uint32_t>(size));
      seal(cut);
      judge(random, cut, verdict);
    }
  }
  CHECK(verdict.inconsistent == 0);
}

TEST_CASE("any flipped bit is refused by magic, version, size or checksum") {
  RandomSource random(19);
  for (int i = 0; i < 3; ++i) {
    const AlignedBytes image = sample_image(random);
    AlignedBytes flipped(image);
    int32_t missed = 0;
    for (size_t bit = 0; bit < 8 * image.size(); ++bit) {
      const auto mask = static_cast<uint8_t>(1u << (bit % 8));
      flipped.data()[bit / 8] ^= mask;
      Model model;
      const Code code = model.open(flipped.data(), flipped.size()).code;
      flipped.data()[bit / 8] ^= mask;
      const size_t word = bit / 32;
      const Code expected = word == 0   ? Code::image_magic
                            : word == 1 ? Code::image_version
                            : word == 2 ? Code::image_too_short
                                        : Code::image_checksum;
      missed += code != expected;
    }
    CHECK(missed == 0);
  }
}

TEST_CASE("flipped bits under a right checksum are refused or safe") {
  RandomSource random(20);
  Verdict verdict;
  for (int i = 0; i < 6000; ++i) {
    AlignedBytes image = sample_image(random);
    const size_t data = image.word(offsetof(ImageHeader, data));
    for (int32_t flips = random.integer(1, 4); flips > 0; --flips) {
      // Mostly among the records: a flip among the weights is only another weight.
      const size_t end = random.chance(10) ? image.size() : data;
      const size_t at = 16 + static_cast<size_t>(random.bits() % (end - 16));
      image.data()[at] ^= static_cast<uint8_t>(1u << random.integer(0, 7));
    }
    seal(image);
    judge(random, image, verdict);
  }
  CAPTURE(verdict.opened);
  CHECK(verdict.opened > 100);  // the sweep reaches behind the checks
  CHECK(verdict.inconsistent == 0);
}

TEST_CASE("hostile values in any field under a right checksum are refused or safe") {
  RandomSource random(21);
  Verdict verdict;
  // The last four as floats: infinity, not a number, 1e-12, 1e6.
  const uint32_t values[] = {0u,         1u,         2u,         3u,         16u,        127u,
                             128u,       255u,       256u,       4096u,      65535u,     65536u,
                             1u << 24,   1u << 28,   0x7FFFFFFF, 0x80000000, 0xFFFFFF80, 0xFFFFFFF0,
                             0xFFFFFFFF, 0x7F800000, 0x7FC00000, 0x2B8CBCCC, 0x49742400};
  for (int i = 0; i < 4; ++i) {
    const AlignedBytes original = sample_image(random);
    for (const size_t offset : field_offsets(original)) {
      for (const uint32_t value : values) {
        AlignedBytes image(original);
        image.set_word(offset, value);
        seal(image);
        judge(random, image, verdict);
      }
    }
  }
  CHECK(verdict.opened > 100);
  CHECK(verdict.inconsistent == 0);
}
