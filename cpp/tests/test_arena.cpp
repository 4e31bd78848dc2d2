// An arena hands memory out, and counts it by part as a device would.
#include <doctest/doctest.h>

#include "core/base/arena.hpp"
#include "core/zo/workspace.hpp"
#include "tests/aligned_bytes.hpp"

using namespace pmt;
using namespace pmt::tests;

TEST_CASE("parts count what was asked for, and buffers what rounding takes") {
  Arena arena;
  arena.take<int8_t>(MemoryPart::weights, 5);
  arena.take<int32_t>(MemoryPart::biases, 3);
  CHECK(arena.bytes(MemoryPart::weights) == 5);
  CHECK(arena.bytes(MemoryPart::biases) == 12);
  CHECK(arena.bytes(MemoryPart::buffers) == 11 + 4);
  arena.take<uint8_t>(MemoryPart::activations, 64, 64);  // from 32 to 64, nothing
  CHECK(arena.bytes(MemoryPart::activations) == 64);
  arena.take<float>(4);
  CHECK(arena.bytes(MemoryPart::buffers) == 11 + 4 + 32 + 16);
  CHECK(arena.total() == 144);
  CHECK(arena.used() == 144);
}

TEST_CASE("structs with pointers count as a device has them, and are handed out as this machine does") {
  AlignedBytes memory(1024);
  Arena arena(memory.data(), memory.size());
  CHECK(arena.take<Parameters>(MemoryPart::lists, 3) != nullptr);
  CHECK(arena.bytes(MemoryPart::lists) == 24);
  CHECK(arena.used() == (3 * sizeof(Parameters) + 15) / 16 * 16);
  arena.take<LayerStorage>(MemoryPart::lists, 1);
  arena.take<Layer>(MemoryPart::lists, 1);
  arena.take<Workspace>(MemoryPart::lists, 1);
  CHECK(arena.bytes(MemoryPart::lists) == 24 + 8 + 40 + 44);
  CHECK(arena.total() == 32 + 16 + 48 + 48);
}

TEST_CASE("counts of two arenas add up by part") {
  Arena first, second;
  first.take<int8_t>(MemoryPart::tables, 16);
  second.take<int8_t>(MemoryPart::tables, 20);
  second.take<int8_t>(MemoryPart::gradient, 32);
  MemoryCount sum = first;
  sum.add(second);
  CHECK(sum.bytes(MemoryPart::tables) == 36);
  CHECK(sum.bytes(MemoryPart::gradient) == 32);
  CHECK(sum.total() == first.total() + second.total());
}

TEST_CASE("no memory has no capacity") {
  Arena arena(nullptr, 1 << 20);
  CHECK(arena.measuring());
  CHECK(arena.take<uint8_t>(16) == nullptr);
  CHECK(arena.used() == 16);
  CHECK_FALSE(arena.fits());
}
