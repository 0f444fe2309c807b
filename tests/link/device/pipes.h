#ifndef PIPES_H
#define PIPES_H

/* Write the buffered bytes to stdout. */
void pipes_flush(void);

#endif
