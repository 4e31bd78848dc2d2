// Memory for arenas, and how what takes it is measured first and opened then.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "core/base/arena.hpp"
#include "host/status_error.hpp"

namespace pmt::host {

// Zeros, aligned to cache lines, as many bytes for each of a number of workers.
class AlignedMemory {
 public:
  AlignedMemory() = default;
  explicit AlignedMemory(size_t bytes, int32_t workers = 1)
      : bytes_(bytes), stride_((bytes + alignment - 1) / alignment * alignment) {
    const size_t all = stride_ * static_cast<size_t>(workers - 1) + bytes;
    memory_.reset(static_cast<uint8_t*>(::operator new (all > 0 ? all : 1, std::align_val_t{alignment})));
    std::memset(memory_.get(), 0, all);
  }

  uint8_t* data(int32_t worker = 0) const { return memory_.get() + stride_ * static_cast<size_t>(worker); }
  size_t bytes() const { return bytes_; }
  Arena arena(int32_t worker = 0) const { return {data(worker), bytes_}; }

 private:
  static constexpr size_t alignment = 64;
  struct Delete {
    void operator()(uint8_t* memory) const { ::operator delete (memory, std::align_val_t{alignment}); }
  };

  size_t bytes_ = 0, stride_ = 0;
  std::unique_ptr<uint8_t[], Delete> memory_;
};

// Memory for all that `take` takes of an arena, for each worker.
template <typename Take>
AlignedMemory measured_memory(const Take& take, int32_t workers = 1) {
  Arena measure;
  take(measure);
  return AlignedMemory(measure.used(), workers);
}

// Opens a trainer or a meter in memory for its tables, which suffices to tell what it needs.
template <typename Opened, typename Setup>
void open_tables(Opened& opened, const Setup& setup, const AlignedMemory& tables) {
  const Status status = opened.open(setup, tables.data(), tables.bytes());
  if (status.code != Code::arena_too_small) check(status);
}

// Opens it in memory of the size that it needs.
template <typename Opened, typename Setup>
AlignedMemory open_measured(Opened& opened, const Setup& setup, size_t table_bytes) {
  open_tables(opened, setup, AlignedMemory(table_bytes));
  AlignedMemory memory(opened.bytes_needed());
  check(opened.open(setup, memory.data(), memory.bytes()));
  return memory;
}

}  // namespace pmt::host
