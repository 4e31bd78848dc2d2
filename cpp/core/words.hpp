// Enumerations whose enumerators are also the words that stand for them outside of the core.
#pragma once

#include <cstdint>

namespace pmt {

// The words of an enumeration, in the order of its values from 0 on.
template <typename Enumeration>
struct Words {
  const char* joined;  // by ", "
  constexpr uint32_t count() const {
    uint32_t found = 1;
    for (const char* at = joined; *at != '\0'; ++at) found += *at == ',' ? 1u : 0u;
    return found;
  }
  constexpr bool holds(Enumeration value) const { return static_cast<uint32_t>(value) < count(); }
};

template <typename Enumeration>
constexpr Words<Enumeration> words() {
  return {joined_words(Enumeration{})};
}

}  // namespace pmt

// Declares an enumeration and its words; the values count from 0.
#define PMT_WORDS(Enumeration, ...)                  \
  enum class Enumeration : uint32_t { __VA_ARGS__ }; \
  constexpr const char* joined_words(Enumeration) { return #__VA_ARGS__; }
