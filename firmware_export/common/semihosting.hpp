// Arm semihosting: a debugger, or QEMU, does input and output for the target.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmt::semihosting {

enum class Mode : uint32_t { read = 1, update = 3 };  // "rb" and "r+b"

void print(const char* text);
[[noreturn]] void exit(int status);

int32_t open(const char* name, Mode mode);
int32_t length(int32_t file);
bool seek(int32_t file, uint32_t offset);
bool read(int32_t file, void* bytes, size_t count);
// Of a pipe: waits for a byte, and returns how many there were.
size_t read_some(int32_t file, void* bytes, size_t count);
bool write(int32_t file, const void* bytes, size_t count);

}  // namespace pmt::semihosting
