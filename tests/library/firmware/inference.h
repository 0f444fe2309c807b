#ifndef INFERENCE_H
#define INFERENCE_H

/* Run the network on all cases. */
void inference(void);

#endif
