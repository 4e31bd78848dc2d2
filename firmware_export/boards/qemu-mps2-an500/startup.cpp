// From reset to main: FPU, stack, .data, .bss; faults end the program with a message.
#include "common/board.hpp"
#include "common/log.hpp"

extern "C" {

// From link.ld.
extern uint32_t stack_limit[], stack_top[];
extern uint32_t data_load[], data_begin[], data_end[];
extern uint32_t bss_begin[], bss_end[];
extern void (*init_begin[])();
extern void (*init_end[])();

int main();
void start();
void reset_handler();
void fault_handler();

}  // extern "C"

namespace {

constexpr uint32_t unused_word = 0xA5A5A5A5u;
constexpr uintptr_t fault_status = 0xE000ED28;   // CFSR
constexpr uintptr_t fault_address = 0xE000ED38;  // BFAR

uint32_t read_register(uintptr_t address) { return *reinterpret_cast<volatile uint32_t*>(address); }

uint32_t exception_number() {
  uint32_t number;
  asm volatile("mrs %0, ipsr" : "=r"(number));
  return number & 0x1FFu;
}

const char* exception_name(uint32_t number) {
  switch (number) {
    case 2: return "non-maskable interrupt";
    case 3: return "hard fault";
    case 4: return "memory management fault";
    case 5: return "bus fault";
    case 6: return "usage fault";
    default: return "unexpected interrupt";
  }
}

}  // namespace

extern "C" {

// The FPU is off after reset, and the compiler may use its registers in any function but this one.
// Everything below the stack pointer is painted, so that the deepest use can be read off later.
__attribute__((naked, used)) void reset_handler() {
  asm volatile(
      "ldr r0, =0xE000ED88 \n"  // CPACR: full access to CP10 and CP11
      "ldr r1, [r0]        \n"
      "orr r1, r1, #0xF00000 \n"
      "str r1, [r0]        \n"
      "dsb                 \n"
      "isb                 \n"
      "ldr r0, =stack_limit \n"
      "ldr r1, =stack_top  \n"
      "ldr r2, =%c0        \n"
      "1: cmp r0, r1       \n"
      "itt lo              \n"
      "strlo r2, [r0], #4  \n"
      "blo 1b              \n"
      "b start             \n" ::"i"(unused_word));
}

__attribute__((used, noreturn)) void start() {
  const uint32_t* from = data_load;
  for (uint32_t* to = data_begin; to < data_end;) *to++ = *from++;
  for (uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
  for (auto* init = init_begin; init < init_end; ++init) (*init)();
  pmt::board::exit(main());
}

// A stack that overflowed cannot hold the handler's frame: it goes back to the top first.
__attribute__((naked, used)) void fault_handler() {
  asm volatile(
      "mov r0, sp        \n"
      "ldr r1, =stack_top \n"
      "mov sp, r1        \n"
      "b report_fault    \n");
}

__attribute__((used, noreturn)) void report_fault(const uint32_t* frame) {
  const uint32_t number = exception_number();
  pmt::firmware::Line line;
  line.text("error: ").text(exception_name(number)).text(" (exception ").number(number);
  // The frame is there only while the stack is inside its limits.
  if (frame >= stack_limit && frame + 8 <= stack_top) {
    line.text(", pc ").hex(frame[6]);
  } else {
    line.text(", the stack overflowed: export with a larger one");
  }
  line.text(", status ").hex(read_register(fault_status)).text(", address ").hex(read_register(fault_address));
  line.text(")").print();
  pmt::board::exit(1);
}

using Handler = void (*)();
// Initial stack pointer, reset, then faults and interrupts.
__attribute__((section(".vectors"), used)) const Handler vectors[16] = {
    reinterpret_cast<Handler>(stack_top),
    reset_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
};

}  // extern "C"
