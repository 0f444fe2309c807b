/* FreeRTOS's names for the kernel in rtos.h, as far as the example in docs/plug-in.md has them. */
#ifndef FREERTOS_H
#define FREERTOS_H

#include "rtos.h"

typedef long BaseType_t;
typedef struct semaphore *SemaphoreHandle_t;

#define pdFALSE 0
#define portMAX_DELAY 0xFFFFFFFFU
#define portYIELD_FROM_ISR(woken) ((void)(woken))

#endif
