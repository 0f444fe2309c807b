#ifndef PIPES_H
#define PIPES_H

/* What was sent is on its way. */
void pipes_flush(void);

#endif
