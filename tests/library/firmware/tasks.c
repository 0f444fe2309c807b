/* Three tasks: the network, one that must not wait for it, and an idle one, which sleeps. */
#include "inference.h"
#include "rtos.h"

#define NPU_STATUS (*(volatile uint32_t *)0xE3000004U)
#define NVIC_ENABLE (*(volatile uint32_t *)0xE000E100U)
#define NVIC_PEND (*(volatile uint32_t *)0xE000E200U)
#define TICK_CONTROL (*(volatile uint32_t *)0xE000E010U)

enum { NPU_BUSY = 1, NPU_INTERRUPT = 1 };

extern volatile int32_t finished;
void set_up(void);

volatile uint32_t blinks, blinks_meanwhile, interrupts_relayed;
static struct semaphore tick, never;

static void run_network(void)
{
    inference();
    blinks_meanwhile = blinks;
    semaphore_take(&never);
}

static void blink(void)
{
    for (;;) {
        semaphore_take(&tick);
        blinks++;
    }
}

/* The array sets the core's event and has no interrupt line, so that this task stands for the line. */
static void idle(void)
{
    NVIC_ENABLE = NPU_INTERRUPT;
    while (finished < 0) {
        __asm volatile("wfe");
        if ((NPU_STATUS & NPU_BUSY) == 0) {
            interrupts_relayed++;
            NVIC_PEND = NPU_INTERRUPT;
            __asm volatile("dsb\n\tisb" ::: "memory");
        }
    }
    TICK_CONTROL = 0;
    for (;;) {
        __asm volatile("wfe");
    }
}

int main(void)
{
    static void (*const tasks[])(void) = {blink, run_network, idle};
    set_up();
    start_tasks(tasks, 3, &tick);
    return 0;
}
