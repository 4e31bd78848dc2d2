// Memory of exactly the size asked for, 16-byte aligned, so that the address sanitizer sees the
// first byte read or written beyond it.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace pmt::tests {

class AlignedBytes {
 public:
  explicit AlignedBytes(size_t count, uint8_t value = 0)
      : memory_(static_cast<uint8_t*>(::operator new(count, std::align_val_t(16)))), count_(count) {
    std::memset(memory_.get(), value, count);
  }
  AlignedBytes(const uint8_t* bytes, size_t count) : AlignedBytes(count) {
    if (count > 0) std::memcpy(memory_.get(), bytes, count);
  }
  AlignedBytes(const AlignedBytes& other) : AlignedBytes(other.data(), other.size()) {}
  AlignedBytes(AlignedBytes&&) = default;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  AlignedBytes& operator=(AlignedBytes&&) = default;
  ~AlignedBytes() = default;

  uint8_t* data() { return memory_.get(); }
  const uint8_t* data() const { return memory_.get(); }
  size_t size() const { return count_; }

  uint32_t word(size_t offset) const {
    uint32_t value;
    std::memcpy(&value, data() + offset, sizeof value);
    return value;
  }
  void set_word(size_t offset, uint32_t value) { std::memcpy(data() + offset, &value, sizeof value); }

 private:
  struct Delete {
    void operator()(uint8_t* memory) const { ::operator delete(memory, std::align_val_t(16)); }
  };
  std::unique_ptr<uint8_t, Delete> memory_;
  size_t count_;
};

}  // namespace pmt::tests
