#include "drivers/stm32/gpio.hpp"

#include "drivers/io.hpp"

namespace pmt::stm32 {
namespace {

constexpr uint32_t GPIO_MODER = 0x00;
constexpr uint32_t GPIO_OSPEEDR = 0x08;
constexpr uint32_t GPIO_PUPDR = 0x0C;
constexpr uint32_t GPIO_IDR = 0x10;
constexpr uint32_t GPIO_BSRR = 0x18;
constexpr uint32_t GPIO_AFRL = 0x20;
constexpr uint32_t input = 0, output = 1, alternate = 2;
constexpr uint32_t low_speed = 0, very_high_speed = 3;

void two_bits(const Pin& pin, uint32_t offset, uint32_t value) {
  io::replace_bits(pin.port + offset, 3u << 2 * pin.number, value << 2 * pin.number);
}

}  // namespace

void make_input(const Pin& pin, Pull pull) {
  two_bits(pin, GPIO_PUPDR, static_cast<uint32_t>(pull));
  two_bits(pin, GPIO_MODER, input);
}

void make_output(const Pin& pin) {
  set(pin, false);
  two_bits(pin, GPIO_OSPEEDR, low_speed);
  two_bits(pin, GPIO_MODER, output);
}

void make_alternate(const Pin& pin, uint32_t function, Pull pull) {
  const uint32_t shift = 4 * (pin.number % 8);
  io::replace_bits(pin.port + GPIO_AFRL + 4 * (pin.number / 8), 15u << shift, function << shift);
  two_bits(pin, GPIO_OSPEEDR, very_high_speed);
  two_bits(pin, GPIO_PUPDR, static_cast<uint32_t>(pull));
  two_bits(pin, GPIO_MODER, alternate);
}

bool is_on(const Pin& pin) {
  const bool high = (io::read(pin.port + GPIO_IDR) >> pin.number & 1) != 0;
  return high == (pin.active == Active::high);
}

void set(const Pin& pin, bool on) {
  const bool high = on == (pin.active == Active::high);
  io::write(pin.port + GPIO_BSRR, 1u << (pin.number + (high ? 0 : 16)));
}

}  // namespace pmt::stm32
