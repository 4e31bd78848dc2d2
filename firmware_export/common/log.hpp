// One line of the log, put together without printf.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmt::firmware {

class Line {
 public:
  Line& text(const char* text);
  Line& number(int64_t value);
  Line& hex(uint32_t value);  // 8 digits
  // numerator / denominator with `digits` decimals, cut off; denominator > 0.
  Line& ratio(int64_t numerator, int64_t denominator, int32_t digits);
  void print();  // adds the end of the line

 private:
  void put(char character);

  static constexpr size_t capacity = 240;  // longer lines are cut
  char buffer_[capacity];
  size_t used_ = 0;
};

}  // namespace pmt::firmware
