// A whole training on a board that loses its power, and on one whose card fails.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "common/session.hpp"
#include "tests/card/simulated_card.hpp"
#include "tests/card/training_card.hpp"
#include "tests/random_network.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

constexpr int32_t steps = 9;
constexpr int32_t interval = 2;

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
