/* Recorded calls of a table's loop: the function, two numbers, and the command's content at the time of the call. */
#include "net_table.h"
#include "noc.h"

enum called {
    WAIT,
    SEND,
    SIGNAL,
    SIGNALS,
    COMMAND,
    CHAIN,
    SUBMIT,
    JOIN,
    CORE,
    DRIVER,
    BEGIN,
    END,
    EVENT,
    RESTORE,
    FETCH,
    FETCHED,
};

struct call {
    uint32_t who;
    uint32_t first;
    uint32_t second;
    uint32_t held;
};

static struct call calls[4096];
static uint32_t count;
static uint32_t failing; /* number of the call that fails, from 1; 0: none */
static int32_t failure;  /* result of the failing call */
static struct net_control control;
struct net_control *const net_control = &control;
const struct net_step *first_step;

static int32_t write_down(enum called who, uint32_t first, uint32_t second, uint32_t held)
{
    calls[count++] = (struct call){ who, first, second, held };
    return count == failing ? failure : 0;
}

static uint32_t address_of(const void *place)
{
    return (uint32_t)(uintptr_t)place;
}

int32_t noc_wait(uint32_t flag, uint32_t times)
{
    return write_down(WAIT, flag, times, 0);
}

int32_t noc_send(const struct noc_descriptor *first)
{
    return write_down(SEND, address_of(first), 0, 0);
}

int32_t noc_signal(uint32_t pe, uint8_t flag, uint8_t own_flag, uint16_t tag)
{
    return write_down(SIGNAL, pe, flag | (uint32_t)own_flag << 8 | (uint32_t)tag << 16, 0);
}

int32_t noc_signal_all(const struct noc_destination *to, uint32_t times, uint8_t flag, uint8_t own_flag, uint16_t tag)
{
    return write_down(SIGNALS, address_of(to), flag | (uint32_t)own_flag << 8 | (uint32_t)tag << 16, times);
}

int32_t noc_fetch(uint32_t from, void *to, uint32_t bytes)
{
    return write_down(FETCH, from, address_of(to), bytes);
}

int32_t noc_fetched(void)
{
    return write_down(FETCHED, 0, 0, 0);
}

int32_t net_run_command(const net_command *command)
{
    return write_down(COMMAND, address_of(command), 0, command->words[1]);
}

int32_t net_run_chain(const net_command *first)
{
    return write_down(CHAIN, address_of(first), 0, first->words[1]);
}

int32_t net_submit_chain(const net_command *first)
{
    return write_down(SUBMIT, address_of(first), 0, first->words[1]);
}

int32_t net_join(void)
{
    return write_down(JOIN, 0, 0, 0);
}

void core_call(uint32_t number, const struct net_argument *arguments)
{
    (void)write_down(CORE, number, address_of(arguments), 0);
}

int32_t driver_call(uint32_t number, const struct net_argument *arguments)
{
    return write_down(DRIVER, number, address_of(arguments), 0);
}

void net_restore(const struct net_state *states, uint32_t parts)
{
    (void)write_down(RESTORE, address_of(states), parts, 0);
}

void net_begin_layer(void)
{
    (void)write_down(BEGIN, 0, 0, 0);
}

int32_t net_end_layer(uint32_t layer)
{
    (void)write_down(END, layer, 0, 0);
    return 0;
}

void net_event(uint32_t step)
{
    (void)write_down(EVENT, step, 0, 0);
}

int32_t run_table(const struct net_step *first, uint32_t observed, uint32_t fails, int32_t status)
{
    first_step = first;
    control.observed = observed;
    failing = fails;
    failure = status;
    count = 0;
    return net_run();
}

uint32_t calls_made(const struct call **made)
{
    *made = calls;
    return count;
}
