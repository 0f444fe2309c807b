/* Program for the test of net_table.c: records all calls. */
#ifndef NET_TABLE_H
#define NET_TABLE_H

#include "net.h"

extern const struct net_step *first_step;
#define NET_FIRST_STEP first_step

enum { NET_TRACES = 1, NET_HAS_CHAINS = 1, NET_HAS_STATES = 1, NET_HAS_PAGES = 1 };

typedef struct {
    uint32_t words[4];
} net_command;

static inline const net_command *net_next_command(const net_command *command)
{
    return command + 1;
}

int32_t net_run_command(const net_command *command);
int32_t net_run_chain(const net_command *first);
int32_t net_submit_chain(const net_command *first);
int32_t net_join(void);
void core_call(uint32_t number, const struct net_argument *arguments);
int32_t driver_call(uint32_t number, const struct net_argument *arguments);
int32_t net_observe(const struct net_step *step, uint32_t layer);

#endif
