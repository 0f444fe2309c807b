/* The kernel: PendSV switches between tasks, SysTick ticks. Single bytes are written by one side at a time. */
#include "rtos.h"

enum { TASKS = 3, STACK_WORDS = 512, FRAME_WORDS = 17, TICK_CYCLES = 2000 };
enum { SAVED_RETURN = 8, PC = 15, XPSR = 16 };

#define ICSR (*(volatile uint32_t *)0xE000ED04U)
#define PRIORITIES (*(volatile uint32_t *)0xE000ED20U)
#define TICK ((volatile uint32_t *)0xE000E010U)
#define PEND_SV (1U << 28)

struct task {
    uint32_t *stack;
    struct semaphore *waits_for;
};

static struct task tasks[TASKS];
static _Alignas(8) uint32_t stacks[TASKS][STACK_WORDS];
static struct task nobody;
static struct task *running;
static struct semaphore *ticked;

void pend_sv_handler(void);
void sys_tick_handler(void);
uint32_t *switch_task(uint32_t *stack);

static void reschedule(void)
{
    ICSR = PEND_SV;
    __asm volatile("dsb\n\tisb" ::: "memory");
}

void semaphore_take(struct semaphore *semaphore)
{
    while (!semaphore->given) {
        running->waits_for = semaphore;
        reschedule();
    }
    semaphore->given = false;
}

void semaphore_give(struct semaphore *semaphore)
{
    semaphore->given = true;
    reschedule();
}

void sys_tick_handler(void)
{
    semaphore_give(ticked);
}

/* The stack of the first task that can run. */
__attribute__((used)) uint32_t *switch_task(uint32_t *stack)
{
    running->stack = stack;
    running = tasks;
    while (running->waits_for != 0 && !running->waits_for->given) {
        running++;
    }
    running->waits_for = 0;
    return running->stack;
}

/* What the hardware does not keep: r4 to r11, the kind of the frame, and s16 to s31 if the task has used the FPU. */
__attribute__((naked)) void pend_sv_handler(void)
{
    __asm volatile("mrs r0, psp\n\t"
                   "tst lr, #16\n\t"
                   "it eq\n\t"
                   "vstmdbeq r0!, {s16-s31}\n\t"
                   "stmdb r0!, {r4-r11, lr}\n\t"
                   "bl switch_task\n\t"
                   "ldmia r0!, {r4-r11, lr}\n\t"
                   "tst lr, #16\n\t"
                   "it eq\n\t"
                   "vldmiaeq r0!, {s16-s31}\n\t"
                   "msr psp, r0\n\t"
                   "bx lr");
}

void start_tasks(void (*const *entries)(void), uint32_t count, struct semaphore *tick)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *frame = &stacks[i][STACK_WORDS - FRAME_WORDS];
        frame[SAVED_RETURN] = 0xFFFFFFFDU;
        frame[PC] = (uint32_t)entries[i] & ~1U;
        frame[XPSR] = 1U << 24;
        tasks[i].stack = frame;
    }
    ticked = tick;
    PRIORITIES = 0xC0FF0000U; /* PendSV comes last */
    TICK[1] = TICK_CYCLES - 1;
    TICK[0] = 7;
    static _Alignas(8) uint32_t forgotten[64]; /* the stack of what comes here, which the first switch leaves */
    running = &nobody;
    __asm volatile("msr psp, %0\n\tmov r0, #2\n\tmsr control, r0\n\tisb" ::"r"(forgotten + 64) : "r0", "memory");
    for (;;) {
        reschedule();
    }
}
