// The functions that a C++ compiler may call on its own. The firmware links no C library, so
// that a call to malloc or new cannot link either. Compiled with -fno-builtin, and by GCC with
// -fno-tree-loop-distribute-patterns: otherwise these loops would become calls to themselves.
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

#ifdef __arm__

// The names that Clang calls on Arm, by the run-time ABI: RTABI32, section 4.3.4. Any alignment will do here.
#define PMT_ALIASES(name, result, parameters, body)                   \
  __attribute__((used)) result __aeabi_##name parameters { body; }    \
  __attribute__((used)) result __aeabi_##name##4 parameters { body; } \
  __attribute__((used)) result __aeabi_##name##8 parameters { body; }

PMT_ALIASES(memcpy, void, (void* to, const void* from, size_t count), memcpy(to, from, count))
PMT_ALIASES(memmove, void, (void* to, const void* from, size_t count), memmove(to, from, count))
PMT_ALIASES(memset, void, (void* to, size_t count, int value), memset(to, value, count))
PMT_ALIASES(memclr, void, (void* to, size_t count), memset(to, 0, count))

#undef PMT_ALIASES

#endif

}  // extern "C"
