// A block of registers that keep what is written, with ready flags that follow their switches.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulated_bus.hpp"

namespace pmt::test {

class RegisterModel : public Peripheral {
 public:
  explicit RegisterModel(uint32_t base) : base_(base) {}

  // Once the bits of `when` are set in its register, the bits of `then` are read as set.
  struct Reaction {
    uint32_t register_when, when, register_then, then;
  };
  std::vector<Reaction> reactions;
  std::vector<uint32_t> written;  // addresses, in order

  uint32_t& at(uint32_t address) { return values_[address - base_]; }

  uint32_t read(uint32_t offset) override {
    uint32_t value = values_[offset];
    for (const Reaction& r : reactions) {
      const bool switched = (values_[r.register_when - base_] & r.when) == r.when;
      if (r.register_then - base_ == offset && switched) value |= r.then;
    }
    return value;
  }

  void write(uint32_t offset, uint32_t value) override {
    written.push_back(base_ + offset);
    values_[offset] = value;
  }

  // Position of the first write to an address; -1 where there is none.
  int32_t first_write(uint32_t address) const {
    for (size_t i = 0; i < written.size(); ++i) {
      if (written[i] == address) return static_cast<int32_t>(i);
    }
    return -1;
  }

 private:
  uint32_t base_;
  std::map<uint32_t, uint32_t> values_;
};

// A USART whose line takes what is sent at once.
class SerialLine : public RegisterModel {
 public:
  SerialLine() : RegisterModel(0) { at(0x1C) = 0xC0; }  // TC and TXE
  void write(uint32_t offset, uint32_t value) override {
    if (offset == 0x28) sent += static_cast<char>(value);
    RegisterModel::write(offset, value);
  }
  std::string sent;
};

}  // namespace pmt::test
