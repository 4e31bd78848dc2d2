// From reset to main: FPU, stack, .data, .bss, MPU; faults end the program with a message.
#include "common/board.hpp"
#include "common/log.hpp"
#include "drivers/cortex_m/memory_protection.hpp"

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
void tick_handler();  // tick.cpp

}  // extern "C"

namespace {

constexpr uint32_t unused_word = 0xA5A5A5A5u;
constexpr uintptr_t fault_status = 0xE000ED28;  // CFSR
constexpr uint32_t memory_address_valid = 1u << 7;
constexpr uintptr_t memory_fault_address = 0xE000ED34;  // MMFAR
constexpr uintptr_t bus_fault_address = 0xE000ED38;     // BFAR
constexpr uintptr_t handler_control = 0xE000ED24;       // SHCSR
constexpr uint32_t handle_each_fault = 7u << 16;        // memory management, bus and usage faults

uint32_t read_register(uintptr_t address) { return *reinterpret_cast<volatile uint32_t*>(address); }

void write_register(uintptr_t address, uint32_t value) { *reinterpret_cast<volatile uint32_t*>(address) = value; }

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
  write_register(handler_control, read_register(handler_control) | handle_each_fault);
  pmt::cortex_m::protect_memory();
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
  const uint32_t status = read_register(fault_status);
  const bool by_mpu = (status & memory_address_valid) != 0;
  line.text(", status ").hex(status).text(", address ");
  line.hex(read_register(by_mpu ? memory_fault_address : bus_fault_address));
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
