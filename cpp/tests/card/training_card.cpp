#include "tests/card/training_card.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/base/crc32.hpp"
#include "tests/image_builder.hpp"
#include "tests/training_run.hpp"

namespace pmt::tests {

namespace {

constexpr int32_t batch = 3;
constexpr int32_t sample_count = 5;

template <typename Value>
void append(std::vector<uint8_t>* bytes, const Value& value) {
  const auto* first = reinterpret_cast<const uint8_t*>(&value);
  bytes->insert(bytes->end(), first, first + sizeof value);
}

}  // namespace

void TrainingCard::add_block(const uint8_t* bytes, size_t count) {
  Block block = {};
  std::copy_n(bytes, count, block.payload);
  const auto number = static_cast<uint32_t>(blocks.size() / sizeof block);
  block.crc32 = crc32(block.payload, sizeof block.payload, crc32(reinterpret_cast<const uint8_t*>(&number), 4));
  append(&blocks, block);
}

void TrainingCard::add(CardSection* section, const std::vector<uint8_t>& bytes) {
  *section = {static_cast<uint32_t>(blocks.size() / sizeof(Block)), static_cast<uint32_t>(bytes.size())};
  for (size_t done = 0; done < bytes.size(); done += payload_bytes) {
    add_block(bytes.data() + done, std::min(payload_bytes, bytes.size() - done));
  }
}

TrainingCard::TrainingCard(const AlignedBytes& image, const TrainerOptions& options, int32_t steps,
                           int32_t save_interval, uint64_t seed) {
  const OwnedModel model(image);
  RandomSource random(seed);
  const std::vector<int32_t> layers = trainable_layers(model);
  const Samples samples = random_samples(random, model, sample_count);
  TrainingRun run(model, options, layers, batch, Machine());

  std::vector<uint8_t> packed[8];
  append(&packed[0], options);
  for (const int32_t layer : layers) append(&packed[1], layer);
  for (int32_t s = 0; s < steps; ++s) {
    Samples chosen;
    const int32_t count = s == 1 ? batch - 1 : batch;
    append(&packed[2], StepRecord{static_cast<uint32_t>(s + 40), 0.5f, count});
    for (int32_t i = 0; i < batch; ++i) {
      const int32_t index = (2 * s + i) % sample_count;
      append(&packed[2], index);
      chosen.images.push_back(samples.images[static_cast<size_t>(index)]);
      chosen.labels.push_back(samples.labels[static_cast<size_t>(index)]);
    }
    StepResult result = {};
    REQUIRE(run.trainer().step(static_cast<uint32_t>(s + 40), 0.5f, count, source_of(chosen), &result).ok());
    append(&packed[5], ResultRecord{result.loss_sum, result.correct, result.changed});
    for (int32_t i = 0; i < run.trainer().layer_count(); ++i) {
      const Layer& layer = run.trainer().layer(i);
      const auto* weights = reinterpret_cast<const uint8_t*>(layer.weights);
      const auto* bias = reinterpret_cast<const uint8_t*>(layer.bias);
      append(&packed[6], ParameterRecord{crc32(weights, static_cast<size_t>(layer.weight_count)),
                                         crc32(bias, 4 * static_cast<size_t>(layer.channels))});
    }
  }
  for (int32_t i = 0; i < sample_count; ++i) {
    const auto& pixels = samples.images[static_cast<size_t>(i)];
    append(&packed[3], samples.labels[static_cast<size_t>(i)]);
    packed[3].insert(packed[3].end(), pixels.begin(), pixels.end());
    packed[3].resize((packed[3].size() + 3) / 4 * 4);
  }

  std::copy_n(card_magic, 4, header.magic);
  header.version = card_version;
  header.model_crc32 = model.header().crc32;
  header.image_bytes = element_count(model.input());
  header.samples = sample_count;
  header.batch = batch;
  header.steps = steps;
  header.layers = static_cast<int32_t>(layers.size());
  header.ops = model.op_count();
  header.save_interval = save_interval;
  header.surprisal_values = run.trainer().prediction().count();
  expected = run.parameters();

  add_block(header.magic, 4);  // its place
  CardSection* sections[] = {&header.options,     &header.layer_list, &header.step_list,  &header.sample_list,
                             &header.activations, &header.results,    &header.parameters, &header.surprisal};
  for (size_t i = 0; i < 8; ++i) add(sections[i], packed[i]);
  add(&header.streams, {});  // every op alone
  add(&header.model, std::vector<uint8_t>(image.data(), image.data() + image.size()));

  size_t checkpoint = 4 * static_cast<size_t>(header.surprisal_values);
  for (int32_t i = 0; i < run.trainer().layer_count(); ++i) {
    const Layer& layer = run.trainer().layer(i);
    checkpoint += 4 * static_cast<size_t>(layer.channels);
    if (options.train_weights != 0) checkpoint += static_cast<size_t>(layer.weight_count);
  }
  header.first_slot = static_cast<uint32_t>(blocks.size() / sizeof(Block));
  checkpoint = (checkpoint + 31) / 32 * 32;
  header.slot_blocks = static_cast<uint32_t>(1 + (checkpoint + payload_bytes - 1) / payload_bytes);
  for (int slot = 0; slot < 2; ++slot) {
    add_block(nullptr, 0);
    blocks.resize(blocks.size() + sizeof(Block) * (header.slot_blocks - 1));
  }
  header.blocks = static_cast<uint32_t>(blocks.size() / sizeof(Block));

  std::vector<uint8_t> rest(blocks.begin() + sizeof(Block), blocks.end());
  blocks.clear();
  add_block(reinterpret_cast<const uint8_t*>(&header), sizeof header);
  blocks.insert(blocks.end(), rest.begin(), rest.end());
}

}  // namespace pmt::tests
