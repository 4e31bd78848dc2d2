// A forward pass and a training step by the core alone, in memory that the program hands over:
//   train_step MODEL.pmt LAYER SAMPLES TRAINED.pmt
// LAYER is an op's index, as `pmt info MODEL.pmt` lists them. SAMPLES holds one sample after another: its label in a
// byte, then the model's int8 input.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/crc32.hpp"
#include "core/net/forward.hpp"
#include "core/train/trainer.hpp"

namespace {

// Aligned to 16 bytes, as the core asks for.
struct Memory {
  explicit Memory(size_t size) : blocks(size / sizeof(std::max_align_t) + 1), bytes(size) {}
  uint8_t* data() { return reinterpret_cast<uint8_t*>(blocks.data()); }
  std::vector<std::max_align_t> blocks;
  size_t bytes;
};

Memory read_file(const char* path) {
  std::ostringstream content;
  if (!(content << std::ifstream(path, std::ios::binary).rdbuf())) {
    std::fprintf(stderr, "cannot read %s: it is missing or empty\n", path);
    std::exit(1);
  }
  const std::string text = content.str();
  Memory memory(text.size());
  std::memcpy(memory.data(), text.data(), text.size());
  return memory;
}

void check(const pmt::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "error %d, see core/base/status.hpp; op or option %d\n", static_cast<int>(status.code),
               status.index());
  std::exit(1);
}

struct Samples {
  const uint8_t* bytes;
  size_t input;  // elements

  static bool read(void* context, int32_t index, int8_t* image, int32_t* label) {
    const Samples& samples = *static_cast<const Samples*>(context);
    const uint8_t* sample = samples.bytes + static_cast<size_t>(index) * (samples.input + 1);
    *label = sample[0];
    std::memcpy(image, sample + 1, samples.input);
    return true;
  }
};

// The number of samples in a file. One that is cut off would be read past the file's end.
int32_t count_samples(const char* path, size_t bytes, const pmt::Model& model) {
  const size_t sample = static_cast<size_t>(pmt::element_count(model.input())) + 1;
  if (bytes % sample != 0) {
    std::fprintf(stderr, "%s has %zu bytes: must be samples of %zu bytes, a label and the model's input\n", path, bytes,
                 sample);
    std::exit(1);
  }
  return static_cast<int32_t>(bytes / sample);
}

// Prints the logits of the first sample.
void run_forward(const pmt::Model& model, const Samples& samples) {
  std::vector<pmt::Parameters> parameters(static_cast<size_t>(model.op_count()));
  pmt::bind_parameters(model, parameters.data());
  const pmt::Network network = {&model, &pmt::portable_kernels(), parameters.data(), nullptr};
  std::vector<int32_t> table(static_cast<size_t>(pmt::Plan::table_size(model)));
  pmt::Plan plan;
  plan.make(model, nullptr, 0, pmt::QueryMemory::shared, table.data());
  pmt::Arena measure;
  pmt::take_activations(measure, network, plan, 1);
  Memory memory(measure.used());
  pmt::Arena arena(memory.data(), memory.bytes);
  const pmt::Activations activations = pmt::take_activations(arena, network, plan, 1);
  std::memcpy(activations.tensor(plan, pmt::Pass::main, model.header().input_tensor), samples.bytes + 1, samples.input);
  pmt::forward(network, plan, activations, 1, 0, model.op_count() - 1);
  pmt::main_logits(network, plan, activations, 1, false);
  for (int32_t i = 0; i < model.classes(); ++i) std::printf("%.9g\n", activations.logits[i]);
}

// Trains the layer, whose weights and biases lie in the image, and prints the sum of the losses before it.
void run_step(const pmt::Model& model, int32_t layer, Samples samples, int32_t count) {
  const pmt::OpRecord& op = model.op(layer);
  const pmt::LayerStorage storage = {const_cast<int8_t*>(model.weights(op)), const_cast<int32_t*>(model.bias(op))};
  pmt::TrainerOptions options;
  options.queries = 20;
  const pmt::TrainerSetup setup = {&model, &pmt::portable_kernels(),  &options, &layer, 1, &storage,
                                   count,  pmt::sequential_executor()};
  Memory tables(pmt::Trainer::table_bytes(model, 1));
  pmt::Trainer trainer;
  trainer.open(setup, tables.data(), tables.bytes);  // enough to know what it needs
  Memory memory(trainer.bytes_needed());
  check(trainer.open(setup, memory.data(), memory.bytes));
  pmt::StepResult result = {};
  check(trainer.step(0, 0.01f, count, {&samples, Samples::read}, &result));
  std::printf("%lld\n", static_cast<long long>(result.loss_sum));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fputs("usage: train_step MODEL.pmt LAYER SAMPLES TRAINED.pmt\n", stderr);
    return 2;
  }
  Memory image = read_file(arguments[1]);
  pmt::Model model;
  check(model.open(image.data(), image.bytes));
  const int32_t layer = std::atoi(arguments[2]);
  if (layer < 0 || layer >= model.op_count() || !pmt::has_weights(model.op(layer)))
    check({pmt::Code::layer_not_trainable, layer});
  Memory data = read_file(arguments[3]);
  const int32_t sample_count = count_samples(arguments[3], data.bytes, model);
  const Samples samples = {data.data(), static_cast<size_t>(pmt::element_count(model.input()))};
  run_forward(model, samples);
  run_step(model, layer, samples, sample_count);
  const uint32_t checksum = pmt::crc32(image.data() + 16, image.bytes - 16);
  std::memcpy(image.data() + offsetof(pmt::ImageHeader, crc32), &checksum, sizeof checksum);
  std::ofstream trained(arguments[4], std::ios::binary);
  trained.write(reinterpret_cast<const char*>(image.data()), static_cast<std::streamsize>(image.bytes));
  if (trained.flush()) return 0;
  std::fprintf(stderr, "cannot write %s\n", arguments[4]);
  return 1;
}
