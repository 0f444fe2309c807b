/* Registers of the pe-mesh boards, for the tests' programs. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define TIMER_CYCLES REGISTER(0xE1000000U)
#define TIMER_CYCLES_HI REGISTER(0xE1000004U)
#define TIMER_INSTRUCTIONS REGISTER(0xE1000008U)
#define TIMER_SLEEP REGISTER(0xE1000010U)

#define DMA_DOORBELL (*after_barrier(0xE2000000U))
#define DMA_STATUS REGISTER(0xE2000004U)
#define DMA_COMPLETED REGISTER(0xE2000008U)
#define DMA_ERROR REGISTER(0xE200000CU)
#define DMA_PE REGISTER(0xE2000010U)
#define DMA_PES REGISTER(0xE2000014U)
#define DMA_FLAG(n) REGISTER(0xE2000100U + 4U * (n))

#define ARRAY_DOORBELL (*after_barrier(0xE3000000U))
#define ARRAY_STATUS REGISTER(0xE3000004U)
#define ARRAY_COMPLETED REGISTER(0xE3000008U)
#define ARRAY_BUSY_CYCLES REGISTER(0xE300000CU)
#define ARRAY_ERROR REGISTER(0xE3000010U)
#define ARRAY_ERROR_COMMAND REGISTER(0xE3000014U)

#define UART_DATA REGISTER(0xE4000000U)
#define UART_STATUS REGISTER(0xE4000004U)

/* Results of a program, and working data from the host. */
#define RESULTS ((volatile uint32_t *)0x10000)
#define WORK 0x11000U

/* Register that hands memory over, after a barrier: all earlier stores are complete. */
static inline volatile uint32_t *after_barrier(uint32_t address)
{
#ifdef __riscv
    __asm volatile("fence w, o" ::: "memory");
#else
    __asm volatile("dsb" ::: "memory");
#endif
    return (volatile uint32_t *)address;
}

#define EVENTS_TAKE REGISTER(0xE6000000U) /* of RISC-V cores */

static inline void wait_for_event(void)
{
#ifdef __riscv
    __asm volatile("wfi" ::: "memory");
    EVENTS_TAKE = 0;
#else
    __asm volatile("wfe" ::: "memory");
#endif
}

#endif
