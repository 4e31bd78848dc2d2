// From reset to main on QEMU's mps2-an500; any fault ends the program.
#include "common/board.hpp"

extern "C" {

extern uint32_t stack_top[], bss_begin[], bss_end[];  // from link.ld

int main();
void start();
void reset_handler();
void fault_handler();

// The FPU is off after reset, and the compiler may use its registers in any function but this one.
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

__attribute__((used, noreturn)) void start() {
  for (uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
  pmt::board::exit(main());
}

__attribute__((used, noreturn)) void fault_handler() {
  pmt::board::print("error: a fault\n");
  pmt::board::exit(1);
}

using Handler = void (*)();
__attribute__((section(".vectors"), used)) const Handler vectors[16] = {
    reinterpret_cast<Handler>(stack_top),
    reset_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
};

}  // extern "C"
