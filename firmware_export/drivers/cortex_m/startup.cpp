// From reset to main: FPU, stack, .data, .bss, arena, MPU; faults end the program with a message.
#include "common/board.hpp"
#include "common/high_water.hpp"
#include "common/log.hpp"
#include "drivers/cortex_m/memory_protection.hpp"
#include "drivers/cortex_m/registers.hpp"
#include "drivers/io.hpp"

extern "C" {

// From link.ld.
extern uint32_t stack_limit[], stack_top[];
extern uint32_t data_load[], data_begin[], data_end[];
extern uint32_t bss_begin[], bss_end[];
extern uint8_t arena_begin[], arena_end[];
extern void (*init_begin[])();
extern void (*init_end[])();

int main();
void start();
void reset_handler();
void fault_handler();
void tick_handler();  // tick.cpp

}  // extern "C"

namespace {

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
      "ldr r0, =%c1        \n"
      "ldr r1, [r0]        \n"
      "orr r1, r1, %2      \n"
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
      "b start             \n" ::"i"(pmt::firmware::paint_word),
      "i"(pmt::cortex_m::CPACR), "i"(pmt::cortex_m::CPACR_FPU));
}

__attribute__((used, noreturn)) void start() {
  const uint32_t* from = data_load;
  for (uint32_t* to = data_begin; to < data_end;) *to++ = *from++;
  for (uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
  pmt::firmware::paint(arena_begin, static_cast<size_t>(arena_end - arena_begin));
  using namespace pmt::cortex_m;
  pmt::io::set_bits(SHCSR, SHCSR_MEMFAULTENA | SHCSR_BUSFAULTENA | SHCSR_USGFAULTENA);
  protect_memory();
  for (auto* init = init_begin; init < init_end; ++init) (*init)();
  pmt::board::exit(main());
}

// A stack that overflowed cannot hold the handler's frame: it goes back to the top first. That overwrites
// the frame, so the program counter is taken out before.
__attribute__((naked, used)) void fault_handler() {
  asm volatile(
      "mov r0, sp           \n"
      "ldr r1, =stack_limit \n"
      "cmp r0, r1           \n"
      "ite hs               \n"
      "ldrhs r1, [r0, #24]  \n"
      "movlo r1, #0         \n"
      "ldr r2, =stack_top   \n"
      "mov sp, r2           \n"
      "b report_fault       \n");
}

__attribute__((used, noreturn)) void report_fault(const uint32_t* frame, uint32_t program_counter) {
  const uint32_t number = exception_number();
  pmt::firmware::Line line;
  line.text("error: ").text(exception_name(number)).text(" (exception ").number(number);
  if (frame >= stack_limit) {
    line.text(", pc ").hex(program_counter);
  } else {
    line.text(", the stack overflowed: export with a larger one");
  }
  const uint32_t status = pmt::io::read(pmt::cortex_m::CFSR);
  const bool by_mpu = (status & pmt::cortex_m::CFSR_MMARVALID) != 0;
  line.text(", status ").hex(status).text(", address ");
  line.hex(pmt::io::read(by_mpu ? pmt::cortex_m::MMFAR : pmt::cortex_m::BFAR));
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
    tick_handler,
};

}  // extern "C"
