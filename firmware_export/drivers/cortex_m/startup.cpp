// From reset, or from the jump of a boot loader, to main: vectors, FPU, stack, .data, .bss, arena, MPU. Faults
// are kept over the reset that follows, and told.
#include "common/board.hpp"
#include "common/log.hpp"
#include "drivers/cortex_m/fault.hpp"
#include "drivers/cortex_m/memory_protection.hpp"
#include "drivers/cortex_m/processor.hpp"
#include "drivers/cortex_m/registers.hpp"
#include "drivers/io.hpp"

extern "C" {

// From link.ld; the address of the first six is the value. A board's own script may be without external memory.
extern uint8_t flash_origin[], flash_bytes[], ram_origin[], ram_bytes[];
extern __attribute__((weak)) uint8_t external_origin[], external_bytes[];
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

using Handler = void (*)();
extern const Handler vectors[16];

}  // extern "C"

namespace {

using namespace pmt;
using namespace pmt::cortex_m;

uint32_t exception_number() {
  uint32_t number;
  asm volatile("mrs %0, ipsr" : "=r"(number));
  return number & 0x1FFu;
}

uint32_t value_of(const uint8_t* symbol) { return reinterpret_cast<uint32_t>(symbol); }

// Switches the unit on with the regions of the linker script.
void protect_memory() {
  ProtectionRegion regions[protection_regions];
  const int32_t count =
      protection({value_of(flash_origin), value_of(flash_bytes)}, {value_of(ram_origin), value_of(ram_bytes)},
                 {value_of(external_origin), value_of(external_bytes)}, regions);
  asm volatile("dmb" ::: "memory");
  io::write(MPU_CTRL, 0);
  for (int32_t i = 0; i < protection_regions; ++i) {
    io::write(MPU_RNR, static_cast<uint32_t>(i));
    io::write(MPU_RBAR, i < count ? regions[i].base : 0);
    io::write(MPU_RASR, i < count ? regions[i].attributes : 0);
  }
  io::write(MPU_CTRL, MPU_CTRL_ENABLE | MPU_CTRL_PRIVDEFENA);
  asm volatile("dsb\n isb" ::: "memory");
}

}  // namespace

extern "C" {

// Not `ldr register, =value`: link-time optimization may put its literal out of reach.
#define PMT_LOAD(register, value) "movw " register ", #:lower16:" value "\n movt " register ", #:upper16:" value "\n"

// A boot loader may have left interrupts masked and a stack of its own. The FPU is off after reset, and the
// compiler may use its registers in any function but this one. Everything below the stack pointer is painted,
// so that the deepest use can be read off later.
__attribute__((naked, used)) void reset_handler() {
  asm volatile(
      "cpsid i             \n"
      "movs r0, #0         \n"
      "msr control, r0     \n"
      "msr basepri, r0     \n"
      "isb                 \n"
      PMT_LOAD("r0", "stack_top")
      "mov sp, r0          \n"
      PMT_LOAD("r0", "%c1")
      "ldr r1, [r0]        \n"
      "orr r1, r1, %2      \n"
      "str r1, [r0]        \n"
      "dsb                 \n"
      "isb                 \n"
      "bl take_over        \n"
      PMT_LOAD("r0", "stack_limit")
      PMT_LOAD("r1", "stack_top")
      PMT_LOAD("r2", "%c0")
      "1: cmp r0, r1       \n"
      "itt lo              \n"
      "strlo r2, [r0], #4  \n"
      "blo 1b              \n"
      "b start             \n" ::"i"(firmware::paint_word),
      "i"(CPACR), "i"(CPACR_FPU));
}

// Exceptions come here from now on, and none that a boot loader has asked for.
__attribute__((used)) void take_over() {
  io::write(MPU_CTRL, 0);
  io::write(SYST_CSR, 0);
  for (uint32_t i = 0; i < NVIC_registers; ++i) {
    io::write(NVIC_ICER + 4 * i, 0xFFFFFFFFu);
    io::write(NVIC_ICPR + 4 * i, 0xFFFFFFFFu);
  }
  io::write(ICSR, ICSR_PENDSTCLR | ICSR_PENDSVCLR);
  io::write(VTOR, reinterpret_cast<uint32_t>(vectors));
  asm volatile("dsb\n isb" ::: "memory");
}

__attribute__((used, noreturn)) void start() {
  const uint32_t* from = data_load;
  for (uint32_t* to = data_begin; to < data_end;) *to++ = *from++;
  for (uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
  firmware::paint(arena_begin, static_cast<size_t>(arena_end - arena_begin));
  io::set_bits(SHCSR, SHCSR_MEMFAULTENA | SHCSR_BUSFAULTENA | SHCSR_USGFAULTENA);
  protect_memory();
  asm volatile("cpsie i\n cpsie f" ::: "memory");
  for (auto* init = init_begin; init < init_end; ++init) (*init)();
  board::exit(main());
}

// A stack that overflowed cannot hold the handler's frame: it goes back to the top first. That overwrites
// the frame, so the return address and the program counter are taken out before.
__attribute__((naked, used)) void fault_handler() {
  asm volatile(
      "mov r0, sp           \n"
      "movs r1, #0          \n"
      "movs r2, #0          \n"
      PMT_LOAD("r3", "stack_limit")
      "cmp r0, r3           \n"
      "itt hs               \n"
      "ldrhs r1, [r0, #24]  \n"
      "ldrhs r2, [r0, #20]  \n"
      PMT_LOAD("r3", "stack_top")
      "mov sp, r3           \n"
      "b report_fault       \n");
}

// Kept first: what follows may fault again.
__attribute__((used, noreturn)) void report_fault(const uint32_t* frame, uint32_t program_counter, uint32_t link) {
  Fault fault = {exception_number(), program_counter, link,           io::read(CFSR),
                 io::read(HFSR),     io::read(MMFAR), io::read(BFAR), 0};
  fault.stack_overflowed = frame < stack_limit ? 1 : 0;
  keep(fault);
  firmware::Line line;
  describe(fault, line.text("error: "));
  after_fault(line);
}

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

__attribute__((weak)) void pmt::cortex_m::after_fault(firmware::Line& report) {
  report.print();
  board::exit(1);
}

namespace pmt::io {

uint32_t read(uint32_t address) { return *reinterpret_cast<volatile uint32_t*>(address); }

void write(uint32_t address, uint32_t value) { *reinterpret_cast<volatile uint32_t*>(address) = value; }

}  // namespace pmt::io
