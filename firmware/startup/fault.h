/* What every exception leads to. */
#ifndef FAULT_H
#define FAULT_H

/* Tell the host which instruction failed and why, then stop. */
void fault_handler(void);

#endif
