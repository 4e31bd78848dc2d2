// The parts that an arena's memory belongs to, and their bytes on a device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmt {

enum class MemoryPart : int32_t {
  weights,      // copies of the trained layers'
  biases,       // and weight scales, of the same
  activations,  // in a compact plan with the kernels' scratch
  gradient,     // its sums, where they have memory of their own
  tables,       // losses of queries, states of their random numbers
  lists,        // layers, the plan
  buffers,      // all else: scratch, perturbed parameters, logits, what rounding takes
};
constexpr int32_t memory_part_count = static_cast<int32_t>(MemoryPart::buffers) + 1;

// Bytes of a T on a device, whose pointers take 4. Structs that hold pointers are larger on a host and say
// theirs beside their definition; a compiler for 32 bits refuses a wrong one where it is taken of an arena.
template <typename T>
constexpr size_t size_on_device = sizeof(T);
template <typename T>
inline constexpr size_t size_on_device<T*> = 4;

#ifdef PMT_COUNTS_MEMORY

// Bytes of each part. Built for hosts alone, which plan for devices.
class MemoryCount {
 public:
  uint64_t bytes(MemoryPart part) const { return bytes_[static_cast<int32_t>(part)]; }
  uint64_t total() const {
    uint64_t sum = 0;
    for (const uint64_t bytes : bytes_) sum += bytes;
    return sum;
  }
  void add(MemoryPart part, uint64_t bytes, size_t alignment) {
    const uint64_t start = (total() + alignment - 1) / alignment * alignment, whole = (bytes + 15) / 16 * 16;
    bytes_[static_cast<int32_t>(MemoryPart::buffers)] += start - total() + whole - bytes;
    bytes_[static_cast<int32_t>(part)] += bytes;
  }
  void add(const MemoryCount& other) {
    for (int32_t i = 0; i < memory_part_count; ++i) bytes_[i] += other.bytes_[i];
  }

 private:
  uint64_t bytes_[memory_part_count] = {};
};

#else

// A device only hands memory out.
class MemoryCount {
 public:
  void add(MemoryPart, uint64_t, size_t) {}
};

#endif

}  // namespace pmt
