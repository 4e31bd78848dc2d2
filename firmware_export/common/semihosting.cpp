#include "common/semihosting.hpp"

namespace pmt::semihosting {
namespace {

enum Call : uint32_t {
  sys_open = 0x01,
  sys_write0 = 0x04,
  sys_write = 0x05,
  sys_read = 0x06,
  sys_seek = 0x0A,
  sys_flen = 0x0C,
  sys_exit_extended = 0x20,
};
constexpr uint32_t application_exit = 0x20026;

int32_t call(Call operation, const void* argument) {
  register uint32_t r0 asm("r0") = operation;
  register const void* r1 asm("r1") = argument;
  asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return static_cast<int32_t>(r0);
}

uint32_t address(const void* pointer) { return reinterpret_cast<uint32_t>(pointer); }

uint32_t length_of(const char* text) {
  uint32_t count = 0;
  while (text[count] != 0) ++count;
  return count;
}

}  // namespace

void print(const char* text) { call(sys_write0, text); }

void exit(int status) {
  const uint32_t arguments[] = {application_exit, static_cast<uint32_t>(status)};
  for (;;) call(sys_exit_extended, arguments);
}

int32_t open(const char* name, Mode mode) {
  const uint32_t arguments[] = {address(name), static_cast<uint32_t>(mode), length_of(name)};
  return call(sys_open, arguments);
}

int32_t length(int32_t file) { return call(sys_flen, &file); }

bool seek(int32_t file, uint32_t offset) {
  const uint32_t arguments[] = {static_cast<uint32_t>(file), offset};
  return call(sys_seek, arguments) == 0;
}

// SYS_READ and SYS_WRITE answer with the number of bytes that they did not move.
size_t read_some(int32_t file, void* bytes, size_t count) {
  const uint32_t arguments[] = {static_cast<uint32_t>(file), address(bytes), count};
  return count - static_cast<size_t>(call(sys_read, arguments));
}

bool read(int32_t file, void* bytes, size_t count) { return read_some(file, bytes, count) == count; }

bool write(int32_t file, const void* bytes, size_t count) {
  const uint32_t arguments[] = {static_cast<uint32_t>(file), address(bytes), count};
  return call(sys_write, arguments) == 0;
}

}  // namespace pmt::semihosting
