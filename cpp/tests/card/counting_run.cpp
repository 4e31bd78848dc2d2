#include "tests/card/counting_run.hpp"

#include <algorithm>

namespace pmt::tests {

using namespace pmt::firmware;

void CountingRun::format() {
  SimulatedCard::instance().reset(2 * counting_slot_blocks);
  Storage storage;
  for (const uint32_t first : {0u, counting_slot_blocks}) {
    Block block = {};
    std::copy_n(slot_magic, 4, block.payload);
    storage.write(first, 0, &block, 1);
  }
}

uint8_t CountingRun::value(uint32_t steps, size_t part, size_t index) {
  return static_cast<uint8_t>(steps * 37 + part * 11 + index * 7 + (index >> 8) * steps);
}

void CountingRun::set(uint32_t steps) {
  steps_ = steps;
  for (size_t p = 0; p < 3; ++p) {
    for (size_t i = 0; i < parts_[p].size(); ++i) parts_[p][i] = value(steps, p, i);
  }
}

bool CountingRun::is_consistent() const {
  for (size_t p = 0; p < 3; ++p) {
    for (size_t i = 0; i < parts_[p].size(); ++i) {
      if (parts_[p][i] != value(steps_, p, i)) return false;
    }
  }
  return true;
}

CheckpointPart CountingRun::part(const void* context, int32_t index) {
  const std::vector<uint8_t>& bytes = static_cast<const CountingRun*>(context)->parts_[index];
  return {const_cast<uint8_t*>(bytes.data()), bytes.size()};
}

bool CountingRun::start() {
  if (!storage_.open()) return false;
  slots_.open(&storage_, 0, counting_slot_blocks, counting_model);
  slots_.use(memory_.data(), memory_.size() * sizeof memory_[0]);
  if (!slots_.find()) return false;
  if (slots_.newest().sequence == 0) return true;
  if (!slots_.load(parts())) return false;
  steps_ = safe_steps_ = slots_.newest().steps;
  return true;
}

bool CountingRun::run_to(uint32_t steps, uint32_t interval) {
  while (steps_ < steps) {
    set(steps_ + interval);
    if (!slots_.save(parts(), steps_, 0)) return false;
    safe_steps_ = steps_;
  }
  return true;
}

}  // namespace pmt::tests
