#include "common/log.hpp"

#include "common/board.hpp"

namespace pmt::firmware {

void Line::put(char character) {
  if (used_ + 2 < capacity) buffer_[used_++] = character;
}

Line& Line::text(const char* text) {
  while (*text != 0) put(*text++);
  return *this;
}

Line& Line::number(int64_t value) {
  uint64_t rest = value < 0 ? 0u - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  char digits[20];
  int32_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + rest % 10u);
    rest /= 10u;
  } while (rest != 0);
  if (value < 0) put('-');
  while (count > 0) put(digits[--count]);
  return *this;
}

Line& Line::hex(uint32_t value) {
  for (int32_t shift = 28; shift >= 0; shift -= 4) put("0123456789abcdef"[(value >> shift) & 15u]);
  return *this;
}

Line& Line::ratio(int64_t numerator, int64_t denominator, int32_t digits) {
  if (numerator < 0) {
    put('-');
    numerator = -numerator;
  }
  number(numerator / denominator).text(".");
  for (int32_t i = 0; i < digits; ++i) {
    numerator = numerator % denominator * 10;
    put(static_cast<char>('0' + numerator / denominator));
  }
  return *this;
}

void Line::print() {
  buffer_[used_] = '\n';
  buffer_[used_ + 1] = 0;
  board::print(buffer_);
  used_ = 0;
}

}  // namespace pmt::firmware
