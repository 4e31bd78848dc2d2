#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "core/image/model_checks.hpp"
#include "core/input/input_stage.hpp"
#include "reference/input_filters.hpp"
#include "tests/image_builder.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

constexpr FilterKind kinds[] = {FilterKind::switching_median, FilterKind::dct_shrinkage, FilterKind::sharpening,
                                FilterKind::standardization, FilterKind::tone_curve};

// Flat, smooth or noisy pixels, with values at both ends.
reference::Pixels random_pixels(RandomSource& random, int32_t height, int32_t width, int32_t channels) {
  reference::Pixels image({static_cast<size_t>(height), static_cast<size_t>(width), static_cast<size_t>(channels)});
  const int32_t noise = random.pick<int32_t>({0, 1, 12, 255}), base = random.integer(0, 255);
  const int32_t slope = random.integer(-8, 8);
  for (size_t y = 0; y < image.shape(0); ++y) {
    for (size_t x = 0; x < image.shape(1); ++x) {
      for (size_t c = 0; c < image.shape(2); ++c) {
        const int32_t value = base + slope * static_cast<int32_t>(x + y) + random.integer(-noise, noise);
        image(y, x, c) = static_cast<uint8_t>(std::clamp(value, 0, 255));
      }
    }
  }
  return image;
}

FilterRecord random_filter(RandomSource& random, FilterKind kind) {
  const StrengthRange range = strength_range(kind);
  int32_t strength = random.integer(range.low, range.high);
  if (random.chance(4)) strength = random.pick<int32_t>({range.low, range.high});
  if (strength == 0 && kind == FilterKind::tone_curve) strength = 1;
  const auto noise = static_cast<NoiseModel>(random.integer(0, 2));
  return {kind, strength, kind == FilterKind::dct_shrinkage ? noise : NoiseModel::constant, 0};
}

struct Size {
  int32_t height, width;
};

// A network of one op behind a stage.
AlignedBytes network(const Size& frame, const Size& input, int32_t channels, const std::vector<FilterRecord>& filters) {
  ImageBuilder builder({{input.height, input.width, channels}, {1, 1, channels}});
  builder.add_op(plain_op(OpKind::mean, 0, 1));
  builder.set_stage(frame.height, frame.width, filters);
  return builder.build();
}

std::vector<int8_t> run(const Model& model, const reference::Pixels& image) {
  AlignedBytes frame(image.data(), static_cast<size_t>(frame_bytes(model)));
  AlignedBytes scratch(static_cast<size_t>(input_stage_bytes(model)), 0xA5);
  std::vector<int8_t> input(static_cast<size_t>(element_count(model.input())));
  run_input_stage(model, frame.data(), scratch.data(), input.data());
  return input;
}

// The frame in the memory of the input, which overwrites it.
std::vector<int8_t> run_in_place(const Model& model, const reference::Pixels& image) {
  const StageMemory places = stage_memory(model);
  AlignedBytes memory(static_cast<size_t>(places.bytes), 0xA5);
  std::memcpy(memory.data() + places.frame, image.data(), static_cast<size_t>(frame_bytes(model)));
  auto* input = reinterpret_cast<int8_t*>(memory.data());
  run_input_stage(model, memory.data() + places.frame, memory.data() + places.scratch, input);
  return {input, input + element_count(model.input())};
}

std::vector<int8_t> expected(const reference::Pixels& image, const Size& input,
                             const std::vector<FilterRecord>& filters) {
  reference::Pixels pixels = image;
  for (const FilterRecord& filter : filters) pixels = reference::filtered(pixels, filter);
  pixels = reference::resample(pixels, input.height, input.width);
  std::vector<int8_t> values;
  for (size_t i = 0; i < pixels.size(); ++i) {
    const auto channel = static_cast<int32_t>(i % pixels.shape(2));
    values.push_back(ImageBuilder::table_value(channel, pixels.data()[i]));
  }
  return values;
}

void compare(RandomSource& random, const Size& frame, const Size& input, int32_t channels,
             const std::vector<FilterRecord>& filters) {
  CAPTURE(frame.height);
  CAPTURE(frame.width);
  CAPTURE(channels);
  const OwnedModel model(network(frame, input, channels, filters));
  const reference::Pixels image = random_pixels(random, frame.height, frame.width, channels);
  const std::vector<int8_t> found = run(model, image);
  CHECK(found == expected(image, input, filters));
  CHECK(run_in_place(model, image) == found);
}

}  // namespace

TEST_CASE("every filter is what its definition says, for any size, channels and strength") {
  RandomSource random(1);
  for (const FilterKind kind : kinds) {
    const int32_t least = kind == FilterKind::dct_shrinkage ? shrinkage_block : 1;
    for (int32_t i = 0; i < 60; ++i) {
      const Size size = {random.integer(least, 12), random.integer(least, 12)};
      const FilterRecord filter = random_filter(random, kind);
      CAPTURE(static_cast<int32_t>(kind));
      CAPTURE(filter.strength);
      CAPTURE(static_cast<int32_t>(filter.noise));
      compare(random, size, size, random.integer(1, 4), {filter});
    }
  }
}

TEST_CASE("resampling gives the bytes of a bilinear filter in double precision, up and down") {
  RandomSource random(2);
  for (int32_t i = 0; i < 200; ++i) {
    const Size frame = {random.integer(1, 60), random.integer(1, 60)};
    compare(random, frame, {random.integer(1, 40), random.integer(1, 40)}, random.integer(1, 4), {});
  }
}

TEST_CASE("filters run one after another, then the frame is resampled") {
  RandomSource random(3);
  for (int32_t i = 0; i < 40; ++i) {
    std::vector<FilterRecord> filters;
    const auto count = static_cast<size_t>(random.integer(2, static_cast<int32_t>(most_filters)));
    while (filters.size() < count) filters.push_back(random_filter(random, kinds[random.integer(0, 4)]));
    const Size frame = {random.integer(4, 20), random.integer(4, 20)};
    compare(random, frame, {random.integer(1, 24), random.integer(1, 24)}, random.integer(1, 4), filters);
  }
}

TEST_CASE("a stage out of its bounds is refused by its filter") {
  const auto status = [](const Size& frame, int32_t channels, const std::vector<FilterRecord>& filters) {
    return status_of(network(frame, {4, 4}, channels, filters));
  };
  const FilterRecord good = {FilterKind::sharpening, 3, NoiseModel::constant, 0};
  CHECK(status({4, 4}, 3, {good}).ok());
  for (const Size& size : {Size{0, 4}, Size{4, 0}, Size{-1, 4}, Size{4, 4097}}) {
    CHECK(status(size, 3, {good}).code == Code::input_stage);
  }
  CHECK(status({4, 4}, 5, {}).code == Code::input_stage);
  CHECK(status({4, 4}, 3, std::vector<FilterRecord>(9, good)).code == Code::input_stage);
  CHECK(status({3, 4}, 3, {{FilterKind::dct_shrinkage, 3, NoiseModel::constant, 0}}).code == Code::input_stage);
  for (const FilterRecord& bad : {FilterRecord{FilterKind::sharpening, 0, NoiseModel::constant, 0},
                                  {FilterKind::sharpening, 256, NoiseModel::constant, 0},
                                  {FilterKind::sharpening, 3, NoiseModel::square_root, 0},
                                  {FilterKind::tone_curve, 0, NoiseModel::constant, 0},
                                  {FilterKind::tone_curve, -16, NoiseModel::constant, 0},
                                  {FilterKind::dct_shrinkage, 3, static_cast<NoiseModel>(3), 0},
                                  {static_cast<FilterKind>(0), 3, NoiseModel::constant, 0},
                                  {static_cast<FilterKind>(6), 3, NoiseModel::constant, 0}}) {
    const Status found = status({4, 4}, 3, {good, bad});
    CHECK(found.code == Code::input_stage);
    CHECK(found.index() == 1);
  }
}

TEST_CASE("a stage that is cut off, misplaced or of another version is refused") {
  const AlignedBytes whole = network({5, 6}, {4, 4}, 3, {{FilterKind::sharpening, 3, NoiseModel::constant, 0}});
  const auto code = [&](size_t field, uint32_t value) {
    AlignedBytes bytes = whole;
    bytes.set_word(field, value);
    seal(bytes);
    return status_of(bytes).code;
  };
  const size_t offset = offsetof(ImageHeader, stage), count = offset + 4, version = offsetof(ImageHeader, version);
  CHECK(code(version, image_version_with_stage) == Code::ok);
  CHECK(code(version, image_version) == Code::image_version);
  CHECK(code(count, 0) == Code::image_version);
  CHECK(code(count, whole.word(count) - 1) == Code::input_stage);
  CHECK(code(count, 8) == Code::input_stage);
  CHECK(code(count, whole.word(count) + 64) == Code::image_layout);
  CHECK(code(offset, whole.word(offset) + 4) == Code::image_layout);
  CHECK(code(offset, 0) == Code::image_layout);
  CHECK(code(offset, whole.word(offsetof(ImageHeader, tensors))) == Code::image_layout);
}

TEST_CASE("a stage with any field changed is refused, or runs inside its memory") {
  RandomSource random(4);
  int32_t opened = 0;
  for (int32_t i = 0; i < 20; ++i) {
    std::vector<FilterRecord> filters = {
        random_filter(random, random.pick<FilterKind>({kinds[0], kinds[1], kinds[2]}))};
    const AlignedBytes whole =
        network({random.integer(4, 9), random.integer(4, 9)}, {5, 7}, random.integer(1, 4), filters);
    const size_t stage = whole.word(offsetof(ImageHeader, stage));
    for (size_t field = stage; field < stage + sizeof(StageRecord) + sizeof(FilterRecord); field += 4) {
      for (const uint32_t value : {0u, 1u, 3u, 64u, 255u, 4096u, 4097u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
        AlignedBytes bytes = whole;
        bytes.set_word(field, value);
        seal(bytes);
        Model model;
        if (!model.open(bytes.data(), bytes.size()).ok() || frame_bytes(model) > 200000) continue;
        ++opened;
        run(model, random_pixels(random, model.stage()->height, model.stage()->width, model.input().channels));
      }
    }
  }
  CHECK(opened > 300);
}
