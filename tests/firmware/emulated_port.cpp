// A port for emulated processors that are not a target: the card is in memory, the console the emulator's. A
// Cortex-M33 on QEMU's mps2-an505, by semihosting; RISC-V in QEMU's emulation of Linux, by its calls.
#include "common/board.hpp"
#include "model/config.hpp"

asm(R"(
  .section .data.card, "aw"
  .balign 16
card_begin:
  .incbin "card.img"
card_end:
  .text
)");

extern "C" {

extern uint8_t card_begin[], card_end[];
int main();

#ifdef __riscv

asm(R"(
  .global _start
_start:
  .option push
  .option norelax
  la gp, __global_pointer$
  .option pop
  call start
)");

#else

extern uint32_t stack_top[];
void reset_handler();
void start();

__attribute__((naked, used)) void reset_handler() {
  asm volatile(
      "ldr r0, =0xE000ED88 \n"  // CPACR: full access to CP10 and CP11
      "ldr r1, [r0]        \n"
      "orr r1, r1, #0xF00000 \n"
      "str r1, [r0]        \n"
      "dsb                 \n"
      "isb                 \n"
      "b start             \n");
}

using Handler = void (*)();
__attribute__((section(".vectors"), used))
const Handler vectors[16] = {reinterpret_cast<Handler>(stack_top), reset_handler};

#endif

__attribute__((used, noreturn)) void start() { pmt::board::exit(main()); }

#if defined(__riscv) && !defined(__riscv_flen)

// Without an FPU the compiler calls the C library's, which rounds correctly as this one does.
float sqrtf(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  if (value <= 0.0f || bits >> 23 == 255) return value;
  int32_t exponent = static_cast<int32_t>(bits >> 23) - 127;
  uint64_t mantissa = (bits & 0x7FFFFF) | 0x800000;  // no subnormal number occurs
  if (exponent % 2 != 0) mantissa *= 2;
  exponent = exponent % 2 != 0 ? (exponent - 1) / 2 : exponent / 2;
  mantissa <<= 25;  // the root has 25 bits: 24, and one to round by
  uint64_t root = 0;
  for (uint64_t bit = 1u << 24; bit != 0; bit >>= 1) {
    if ((root | bit) * (root | bit) <= mantissa) root |= bit;
  }
  const uint64_t rounded = (root + 1) >> 1;  // a root is never half way
  bits = (static_cast<uint32_t>(exponent + 126) << 23) + static_cast<uint32_t>(rounded);
  __builtin_memcpy(&value, &bits, sizeof bits);
  return value;
}

#endif

}  // extern "C"

namespace {

#ifdef __riscv

long call(long number, long first, long second, long third) {
  register long a0 asm("a0") = first;
  register long a1 asm("a1") = second;
  register long a2 asm("a2") = third;
  register long a7 asm("a7") = number;
  asm volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
  return a0;
}

#else

void call(uint32_t operation, const void* argument) {
  register uint32_t r0 asm("r0") = operation;
  register const void* r1 asm("r1") = argument;
  asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

#endif

alignas(16) uint8_t memory[pmt::exported::arena_bytes];

uint32_t card_blocks() { return static_cast<uint32_t>(card_end - card_begin) / pmt::board::block_bytes; }

}  // namespace

namespace pmt::board {

void init() { firmware::paint(memory, sizeof memory); }

#ifdef __riscv

void print(const char* text) { call(64, 1, reinterpret_cast<long>(text), static_cast<long>(__builtin_strlen(text))); }

void exit(int status) {
  call(93, status, 0, 0);
  __builtin_unreachable();
}

#else

void print(const char* text) { call(0x04, text); }

void exit(int status) {
  const uint32_t reason[] = {0x20026, static_cast<uint32_t>(status)};
  call(0x20, reason);
  __builtin_unreachable();
}

#endif

Memory arena() { return {memory, sizeof memory, sizeof memory}; }
StackUse stack_use() { return {0, 0}; }
uint32_t milliseconds() { return 0; }
void feed_watchdog() {}
void set_led(bool) {}

CardStatus open_card(uint32_t* blocks) {
  *blocks = card_blocks();
  return CardStatus::ok;
}

CardStatus read_blocks(uint32_t first, uint32_t count, void* bytes) {
  if (!is_on_card(first, count, card_blocks())) return CardStatus::out_of_range;
  __builtin_memcpy(bytes, card_begin + first * block_bytes, count * block_bytes);
  return CardStatus::ok;
}

CardStatus write_blocks(uint32_t first, uint32_t count, const void* bytes) {
  if (!is_on_card(first, count, card_blocks())) return CardStatus::out_of_range;
  __builtin_memcpy(card_begin + first * block_bytes, bytes, count * block_bytes);
  return CardStatus::ok;
}

}  // namespace pmt::board
