// Registers of the processor, named as in the Armv7-M Architecture Reference Manual (B3.2 to B3.5, B2.2.7).
#pragma once

#include <cstdint>

namespace pmt::cortex_m {

// SysTick.
constexpr uint32_t SYST_CSR = 0xE000E010;
constexpr uint32_t SYST_CSR_ENABLE = 1u << 0;
constexpr uint32_t SYST_CSR_TICKINT = 1u << 1;
constexpr uint32_t SYST_CSR_CLKSOURCE = 1u << 2;  // the processor's clock
constexpr uint32_t SYST_CSR_COUNTFLAG = 1u << 16;
constexpr uint32_t SYST_RVR = 0xE000E014;
constexpr uint32_t SYST_CVR = 0xE000E018;

// Interrupt controller: registers of 32 interrupts each.
constexpr uint32_t NVIC_ICER = 0xE000E180;
constexpr uint32_t NVIC_ICPR = 0xE000E280;
constexpr uint32_t NVIC_registers = 8;

// System control block.
constexpr uint32_t ICSR = 0xE000ED04;
constexpr uint32_t ICSR_PENDSTCLR = 1u << 25;
constexpr uint32_t ICSR_PENDSVCLR = 1u << 27;
constexpr uint32_t VTOR = 0xE000ED08;
constexpr uint32_t CCR = 0xE000ED14;
constexpr uint32_t CCR_DC = 1u << 16;
constexpr uint32_t CCR_IC = 1u << 17;
constexpr uint32_t SHCSR = 0xE000ED24;
constexpr uint32_t SHCSR_MEMFAULTENA = 1u << 16;
constexpr uint32_t SHCSR_BUSFAULTENA = 1u << 17;
constexpr uint32_t SHCSR_USGFAULTENA = 1u << 18;
constexpr uint32_t CFSR = 0xE000ED28;
constexpr uint32_t HFSR = 0xE000ED2C;
constexpr uint32_t MMFAR = 0xE000ED34;
constexpr uint32_t BFAR = 0xE000ED38;
constexpr uint32_t CCSIDR = 0xE000ED80;
constexpr uint32_t CSSELR = 0xE000ED84;
constexpr uint32_t CPACR = 0xE000ED88;
constexpr uint32_t CPACR_FPU = 0xFu << 20;  // full access to CP10 and CP11

// Memory protection unit.
constexpr uint32_t MPU_CTRL = 0xE000ED94;
constexpr uint32_t MPU_CTRL_ENABLE = 1u << 0;
constexpr uint32_t MPU_CTRL_PRIVDEFENA = 1u << 2;  // the default map where no region is: the processor's registers
constexpr uint32_t MPU_RNR = 0xE000ED98;
constexpr uint32_t MPU_RBAR = 0xE000ED9C;
constexpr uint32_t MPU_RASR = 0xE000EDA0;

// Caches.
constexpr uint32_t ICIALLU = 0xE000EF50;
constexpr uint32_t DCISW = 0xE000EF60;
constexpr uint32_t DCCMVAC = 0xE000EF68;

}  // namespace pmt::cortex_m
