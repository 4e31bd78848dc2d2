// The one block of memory a caller hands over, given out from front to back. With no memory behind
// it, it only counts: the same code that builds the trainer measures it.
#pragma once

#include "core/base/memory_parts.hpp"

namespace pmt {

class Arena : public MemoryCount {
 public:
  Arena() = default;
  // No memory has no capacity, whatever the caller says: what is opened on it does not fit.
  Arena(void* memory, size_t capacity)
      : memory_(static_cast<uint8_t*>(memory)), capacity_(memory == nullptr ? 0 : capacity) {}

  // `count` objects, aligned as far as the arena's memory is; nullptr while measuring or once the arena is
  // full. `alignment` is a power of two of at least 16.
  template <typename T>
  T* take(MemoryPart part, int64_t count, size_t alignment = 16) {
    static_assert(sizeof(void*) != 4 || sizeof(T) == size_on_device<T>, "size_on_device<T> is wrong");
    add(part, static_cast<uint64_t>(count) * size_on_device<T>, alignment);
    return static_cast<T*>(take_bytes(static_cast<uint64_t>(count) * sizeof(T), alignment));
  }

  template <typename T>
  T* take(int64_t count, size_t alignment = 16) {
    return take<T>(MemoryPart::buffers, count, alignment);
  }

  size_t used() const { return used_; }
  bool measuring() const { return memory_ == nullptr; }
  bool fits() const { return used_ <= capacity_; }

 private:
  void* take_bytes(uint64_t bytes, size_t alignment);

  uint8_t* memory_ = nullptr;
  size_t capacity_ = 0;
  size_t used_ = 0;
};

// What an arena has given out, in bytes on a device where those are counted, else in this machine's.
inline size_t device_bytes(const Arena& arena) {
#ifdef PMT_COUNTS_MEMORY
  return static_cast<size_t>(arena.total());
#else
  return arena.used();
#endif
}

}  // namespace pmt
