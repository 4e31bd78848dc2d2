// Enumerations whose enumerators are also the words that stand for them outside of the core.
#pragma once

#include <cstdint>

namespace pmt {

// The words of an enumeration, in the order of its values from 0 on.
template <typename Enumeration>
struct Words {
  const char* joined;  // by ", "
  uint32_t count;
  constexpr bool holds(Enumeration value) const { return static_cast<uint32_t>(value) < count; }
};

constexpr uint32_t count_words(const char* joined) {
  uint32_t count = 1;
  for (; *joined != '\0'; ++joined) count += *joined == ',' ? 1u : 0u;
  return count;
}

// A variable, so that no word is counted on a device.
template <typename Enumeration>
constexpr Words<Enumeration> words = {joined_words(Enumeration{}), count_words(joined_words(Enumeration{}))};

}  // namespace pmt

// Declares an enumeration and its words; the values count from 0.
#define PMT_WORDS(Enumeration, ...)                  \
  enum class Enumeration : uint32_t { __VA_ARGS__ }; \
  constexpr const char* joined_words(Enumeration) { return #__VA_ARGS__; }
