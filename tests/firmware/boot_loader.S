// A boot loader at address 0 that jumps to the firmware at APPLICATION as rude ones do: vectors, stack, interrupts
// and their mask stay its own. An exception that still comes here ends the emulation.
  .syntax unified
  .cpu cortex-m7
  .thumb
  .section .text
  .word 0x20200000, start + 1
  .rept 78
  .word taken + 1
  .endr
start:
  cpsid i
  ldr r0, =0xE000ED08  // VTOR
  movs r1, #0
  str r1, [r0]
  ldr r0, =0xE000E010  // SysTick, with its interrupt
  ldr r1, =9999
  str r1, [r0, #4]
  movs r1, #7
  str r1, [r0]
  movs r1, #0xFF
  ldr r0, =0xE000E100  // NVIC_ISER, NVIC_ISPR: interrupts 0 to 7
  str r1, [r0]
  ldr r0, =0xE000E200
  str r1, [r0]
  ldr r0, =0x20200000
  msr psp, r0
  movs r0, #2
  msr control, r0
  isb
  ldr r0, =APPLICATION
  ldr r1, [r0, #4]
  bx r1
taken:
  movs r0, #4  // SYS_WRITE0
  adr r1, message
  bkpt 0xAB
  movs r0, #0x20  // SYS_EXIT_EXTENDED
  ldr r1, =reason
  bkpt 0xAB
  b .
  .align 2
message:
  .asciz "the boot loader took an exception\n"
  .align 2
reason:
  .word 0x20026, 77
  .ltorg
