// A whole training on a board that loses its power, and on one whose card fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "common/session.hpp"
#include "core/base/crc32.hpp"
#include "core/card/card_format.hpp"
#include "core/train/trainer.hpp"
#include "tests/aligned_bytes.hpp"
#include "tests/card/simulated_card.hpp"
#include "tests/image_builder.hpp"
#include "tests/random_network.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

constexpr int32_t batch = 3;
constexpr int32_t sample_count = 5;
constexpr int32_t steps = 9;
constexpr int32_t interval = 2;

template <typename Value>
void append(std::vector<uint8_t>* bytes, const Value& value) {
  const auto* first = reinterpret_cast<const uint8_t*>(&value);
  bytes->insert(bytes->end(), first, first + sizeof value);
}

// A card for a training of random data, as `pmt export` writes it, made from the format's words alone;
// the host's results come from a trainer of the core.
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

AlignedBytes small_network() {
  RandomSource random(3);
  return random_network(random, 2, Head::fully_connected);
}

AlignedBytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  REQUIRE(!bytes.empty());
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

struct Board {
  explicit Board(const TrainerOptions& options, const AlignedBytes& model = small_network(), int32_t count = steps)
      : image(model), training(image, options, count, interval, 3) {
    SimulatedCard::instance().reset(0);
    SimulatedCard::instance().bytes = training.blocks;
  }

  // As an export's config.hpp has it.
  firmware::ModelImage model_image() const {
    return {image.data(), image.size(), reinterpret_cast<const ImageHeader*>(image.data())->crc32};
  }

  // Runs as main does; the exit status.
  int run() {
    session = std::make_unique<firmware::Session>();
    bool running = session->open(model_image(), {memory.data(), memory.size()});
    running = running && session->check_activations() && session->resume();
    while (running && !session->finished()) running = session->step();
    return session->report();
  }

  std::vector<int32_t> parameters() const { return parameters_of(session->trainer()); }

  RandomSource random = RandomSource(4);
  AlignedBytes image;
  TrainingCard training;
  AlignedBytes memory = AlignedBytes(1 << 20, 0xA5);
  std::unique_ptr<firmware::Session> session;
};

TrainerOptions some_options(bool weights, float diversity = 0.0f) {
  TrainerOptions options;
  options.queries = 4;
  options.loss = diversity > 0.0f ? Loss::entropy : Loss::cross_entropy;
  options.diversity = diversity;
  options.train_weights = weights ? 1 : 0;
  options.rounding = Rounding::stochastic;
  return options;
}

std::string last_line(const std::string& log) {
  const size_t end = log.size() - 1;
  return log.substr(log.rfind('\n', end - 1) + 1, end - log.rfind('\n', end - 1) - 1);
}

// From a new card, with a cut in write number `first` and others at random until the end; how many.
int32_t train_with_cuts(Board& board, int64_t first, int64_t writes) {
  SimulatedCard& card = SimulatedCard::instance();
  card.reset(0);
  card.bytes = board.training.blocks;
  card.cut_power(first, board.random.pick(all_torn), &board.random);
  for (int32_t cuts = 0;;) {
    try {
      const int status = board.run();
      REQUIRE(status == 0);
      return cuts;
    } catch (const PowerCut&) {
      ++cuts;
      card.power_on();
      card.cut_power(board.random.integer(0, static_cast<int32_t>(writes)), board.random.pick(all_torn), &board.random);
    }
  }
}

}  // namespace

TEST_CASE("training that power cuts interrupt ends with the bytes of one that none does") {
  for (const float diversity : {0.0f, 0.7f}) {
    for (const bool weights : {true, false}) {
      Board board(some_options(weights, diversity));
      REQUIRE(board.run() == 0);
      CHECK(board.parameters() == board.training.expected);
      const int64_t writes = SimulatedCard::instance().writes;  // of the training without interruption
      REQUIRE(writes >= 10);
      int32_t cuts = 0;
      for (int64_t first = 0; first < writes; first += 1 + writes / 12) {
        cuts += train_with_cuts(board, first, writes);
        CHECK(board.parameters() == board.training.expected);
      }
      CHECK(cuts >= 10);
    }
  }
}

TEST_CASE("so does the training of the bundled network") {
  TrainerOptions options = some_options(true, 0.7f);
  options.queries = 2;
  Board board(options, read_file(PMT_BUNDLED_MODEL), 5);
  REQUIRE(board.run() == 0);
  CHECK(board.parameters() == board.training.expected);
  const int64_t writes = SimulatedCard::instance().writes;
  CHECK(train_with_cuts(board, writes / 2, writes) >= 1);
  CHECK(board.parameters() == board.training.expected);
}

TEST_CASE("a card that fails for a while costs tries and nothing else") {
  Board board(some_options(true, 0.7f));
  for (const TransferFault fault :
       {TransferFault::bad_transfer, TransferFault::no_response, TransferFault::flipped_read, TransferFault::lost_write,
        TransferFault::short_write}) {
    SimulatedCard& card = SimulatedCard::instance();
    card.reset(0);
    card.bytes = board.training.blocks;
    card.inject(fault, 3);
    CHECK(board.run() == 0);
    CHECK(board.parameters() == board.training.expected);
    CHECK(card.log.find("card: 3 retries\n") != std::string::npos);
  }
}

TEST_CASE("a card that gets stuck stops training in a safe state, and the next start goes on") {
  Board board(some_options(true, 0.7f));
  SimulatedCard& card = SimulatedCard::instance();
  firmware::Session session;
  REQUIRE(session.open(board.model_image(), {board.memory.data(), board.memory.size()}));
  REQUIRE(session.resume());
  for (int i = 0; i < 5; ++i) REQUIRE(session.step());
  const std::vector<uint8_t> good = card.bytes;
  card.inject(TransferFault::no_response, -1);
  CHECK(!session.step());
  CHECK(!card.led);
  CHECK(session.report() == 1);
  CHECK(card.log.find("error: card: block ") != std::string::npos);
  CHECK(last_line(card.log).find("cannot be read: the card does not answer any more (4 tries)") != std::string::npos);
  CHECK(card.bytes == good);

  card.power_on();
  CHECK(board.run() == 0);
  CHECK(card.log.find("resume: 4 of 9 steps done, checkpoint 2\n") != std::string::npos);
  CHECK(board.parameters() == board.training.expected);
}

TEST_CASE("the image of another export is refused, a damaged one too, and none") {
  Board board(some_options(true));
  const std::string& log = SimulatedCard::instance().log;
  const board::Memory memory = {board.memory.data(), board.memory.size()};
  firmware::ModelImage image = board.model_image();
  image.crc32 ^= 1;
  firmware::Session session;
  CHECK(!session.open(image, memory));
  CHECK(last_line(log) ==
        "error: model: not the image of this export: it is damaged, or of another export in the program");
  image = board.model_image();
  board.image.data()[board.image.size() - 1] ^= 1;
  CHECK(!session.open(image, memory));
  CHECK(last_line(log) == "error: model: the checksum differs: the image is damaged");
  image.bytes = nullptr;
  CHECK(!session.open(image, memory));
  CHECK(last_line(log) == "error: model: the image is shorter than its header says");
}

TEST_CASE("no card, or one of something else, is said at once") {
  Board board(some_options(true));
  SimulatedCard& card = SimulatedCard::instance();
  SUBCASE("absent") {
    card.present = false;
    CHECK(board.run() == 1);
    CHECK(last_line(card.log) == "verify: card: no card answers (4 tries)");
  }
  SUBCASE("of something else") {
    card.bytes[0] ^= 1;
    CHECK(board.run() == 1);
    CHECK(last_line(card.log) ==
          "verify: card: this is not a card of pmt export, or of another version, or its header is damaged");
  }
  SUBCASE("too small") {
    card.bytes.resize(card.bytes.size() - 512);
    CHECK(board.run() == 1);
    CHECK(last_line(card.log) == "verify: card: the card is smaller than its header says");
  }
  CHECK(card.writes == 0);
}
