// QEMU's mps2-an500 (Cortex-M7): console and storage by semihosting, the arena in the board's RAM.
#include "common/board.hpp"

#include "common/semihosting.hpp"
#include "model/config.hpp"

// From link.ld.
extern "C" uint32_t stack_limit[];
extern "C" uint32_t stack_top[];

namespace pmt::board {
namespace {

constexpr uint32_t unused_word = 0xA5A5A5A5u;  // what startup.cpp paints the stack with
// Not zeroed at the start: a computation that reads what it did not write shows in the comparison.
alignas(16) __attribute__((section(".arena"))) uint8_t memory[exported::arena_bytes];

}  // namespace

void init() {
  for (size_t i = 0; i < sizeof memory; ++i) memory[i] = 0xA5;
}

void print(const char* text) { semihosting::print(text); }

void exit(int status) { semihosting::exit(status); }

Memory arena() { return {memory, sizeof memory}; }

StackUse stack_use() {
  const uint32_t* deepest = stack_limit;
  while (deepest < stack_top && *deepest == unused_word) ++deepest;
  return {static_cast<size_t>(stack_top - deepest) * sizeof(uint32_t),
          static_cast<size_t>(stack_top - stack_limit) * sizeof(uint32_t)};
}

int32_t open(const char* name, Access access) {
  return semihosting::open(name, access == Access::read ? semihosting::Mode::read : semihosting::Mode::write);
}

int64_t size(int32_t file) { return semihosting::length(file); }

bool read(int32_t file, uint32_t offset, void* bytes, size_t count) {
  return semihosting::seek(file, offset) && semihosting::read(file, bytes, count);
}

bool append(int32_t file, const void* bytes, size_t count) { return semihosting::write(file, bytes, count); }

bool close(int32_t file) { return semihosting::close(file); }

bool rename(const char* from, const char* to) { return semihosting::rename(from, to); }

}  // namespace pmt::board
