// The seam between the application and a board. A new board is a folder beside
// boards/qemu-mps2-an500 that defines these functions; application and common code stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmt::board {

// Called first in main: clocks, console, storage.
void init();

// Writes text to the console.
void print(const char* text);

// Ends the program; a status other than 0 means failure.
[[noreturn]] void exit(int status);

struct Memory {
  uint8_t* data;  // 16-byte aligned
  size_t bytes;
};

// The memory that training may use. It holds arbitrary bytes at the start.
Memory arena();

struct StackUse {
  size_t used;  // the deepest so far
  size_t bytes;
};
StackUse stack_use();

// Storage: files on a card, read at any offset and written from front to back.
enum class Access { read, write };
constexpr int32_t no_file = -1;

int32_t open(const char* name, Access access);  // no_file on failure
int64_t size(int32_t file);                     // bytes, -1 on failure
bool read(int32_t file, uint32_t offset, void* bytes, size_t count);
bool append(int32_t file, const void* bytes, size_t count);
bool close(int32_t file);
// Replaces `to` where it exists.
bool rename(const char* from, const char* to);

}  // namespace pmt::board
