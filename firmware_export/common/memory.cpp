// The functions that a C++ compiler may call on its own. The firmware links no C library, so
// that a call to malloc or new cannot link either. Compiled with -fno-tree-loop-distribute-patterns
// and -fno-builtin: otherwise GCC would turn these loops into calls to themselves.
#include <cstddef>
#include <cstdint>

namespace {

// Cortex-M7 reads and writes words at any address; the type only tells the compiler so.
struct __attribute__((packed, may_alias)) Word {
  uint32_t value;
};

}  // namespace

extern "C" {

__attribute__((used)) void* memcpy(void* to, const void* from, size_t count) {
  auto* target = static_cast<uint8_t*>(to);
  const auto* source = static_cast<const uint8_t*>(from);
  for (; count >= sizeof(Word); count -= sizeof(Word), target += sizeof(Word), source += sizeof(Word)) {
    *reinterpret_cast<Word*>(target) = *reinterpret_cast<const Word*>(source);
  }
  for (; count > 0; --count) *target++ = *source++;
  return to;
}

__attribute__((used)) void* memmove(void* to, const void* from, size_t count) {
  auto* target = static_cast<uint8_t*>(to);
  const auto* source = static_cast<const uint8_t*>(from);
  // Forwards copying is safe unless the target starts inside the source.
  if (reinterpret_cast<uintptr_t>(target) - reinterpret_cast<uintptr_t>(source) >= count) {
    return memcpy(to, from, count);
  }
  while (count > 0) {
    --count;
    target[count] = source[count];
  }
  return to;
}

__attribute__((used)) void* memset(void* to, int value, size_t count) {
  auto* target = static_cast<uint8_t*>(to);
  const uint32_t word = (static_cast<uint32_t>(value) & 0xFFu) * 0x01010101u;
  for (; count >= sizeof(Word); count -= sizeof(Word), target += sizeof(Word)) {
    reinterpret_cast<Word*>(target)->value = word;
  }
  for (; count > 0; --count) *target++ = static_cast<uint8_t>(value);
  return to;
}

__attribute__((used)) int memcmp(const void* left, const void* right, size_t count) {
  const auto* a = static_cast<const uint8_t*>(left);
  const auto* b = static_cast<const uint8_t*>(right);
  for (size_t i = 0; i < count; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

__attribute__((used)) size_t strlen(const char* text) {
  size_t count = 0;
  while (text[count] != 0) ++count;
  return count;
}

}  // extern "C"
