/* SPDX-License-Identifier: Apache-2.0 */
/* A network under TensorFlow Lite Micro on the AN386: sends the cycles of its ops and its outputs through the UART. */
#include <cstdint>
#include <cstring>

#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_profiler_interface.h"
#include "tensorflow/lite/schema/schema_generated.h"

extern "C" const uint8_t network[], inputs[];
extern "C" uint32_t data_begin[], data_end[], data_load[], bss_begin[], bss_end[], stack_top[];
extern "C" void (*const init_begin[])(), (*const init_end[])();

namespace {

constexpr uintptr_t kTimer = 0x40000000, kUart = 0x40004000;
constexpr int kOps = 64;
alignas(16) uint8_t arena[1 << 20];

volatile uint32_t& Register(uintptr_t address) { return *reinterpret_cast<volatile uint32_t*>(address); }

void Send(const void* bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        while (Register(kUart + 4) & 1) {
        }
        Register(kUart) = static_cast<const uint8_t*>(bytes)[i];
    }
}

/* The timer counts cycles of the core downwards. */
class Cycles : public tflite::MicroProfilerInterface {
public:
    uint32_t BeginEvent(const char*) override
    {
        begun_ = Register(kTimer + 4);
        return 0;
    }
    void EndEvent(uint32_t) override { sum += begun_ - Register(kTimer + 4); }
    uint32_t sum = 0;

private:
    uint32_t begun_ = 0;
};

void AddOps(tflite::MicroMutableOpResolver<kOps>& ops)
{
    ops.AddAdd();
    ops.AddArgMax();
    ops.AddCast();
    ops.AddConcatenation();
    ops.AddCumSum();
    ops.AddDiv();
    ops.AddFullyConnected();
    ops.AddGather();
    ops.AddGreater();
    ops.AddHardSwish();
    ops.AddLogistic();
    ops.AddMaximum();
    ops.AddMean();
    ops.AddMul();
    ops.AddPad();
    ops.AddPrelu();
    ops.AddQuantize();
    ops.AddReduceMax();
    ops.AddRelu();
    ops.AddResizeBilinear();
    ops.AddResizeNearestNeighbor();
    ops.AddSelectV2();
    ops.AddSoftmax();
    ops.AddSquaredDifference();
    ops.AddSub();
    ops.AddSum();
    ops.AddTranspose();
}

uint32_t Run(Cycles& cycles)
{
    static tflite::MicroMutableOpResolver<kOps> ops;
    AddOps(ops);
    static tflite::MicroInterpreter interpreter(tflite::GetModel(network), ops, arena, sizeof arena, nullptr, &cycles);
    if (interpreter.AllocateTensors() != kTfLiteOk) {
        return 0;
    }
    const uint8_t* given = inputs;
    for (size_t i = 0; i < interpreter.inputs_size(); i++) {
        memcpy(interpreter.input(i)->data.raw, given, interpreter.input(i)->bytes);
        given += interpreter.input(i)->bytes;
    }
    cycles.sum = 0;
    if (interpreter.Invoke() != kTfLiteOk) {
        return 0;
    }
    const uint32_t taken = cycles.sum;
    Send(&taken, sizeof taken);
    for (size_t i = 0; i < interpreter.outputs_size(); i++) {
        Send(interpreter.output(i)->data.raw, interpreter.output(i)->bytes);
    }
    return taken;
}

} // namespace

extern "C" [[noreturn]] void reset()
{
#ifdef __VFP_FP__
#ifndef __SOFTFP__
    Register(0xE000ED88) |= 0xFU << 20; /* the FPU is on */
#endif
#endif
    memcpy(data_begin, data_load, reinterpret_cast<uintptr_t>(data_end) - reinterpret_cast<uintptr_t>(data_begin));
    memset(bss_begin, 0, reinterpret_cast<uintptr_t>(bss_end) - reinterpret_cast<uintptr_t>(bss_begin));
    for (auto each = init_begin; each < init_end; each++) {
        (*each)();
    }
    Register(kTimer + 8) = UINT32_MAX;
    Register(kTimer + 4) = UINT32_MAX;
    Register(kTimer) = 1;
    Register(kUart + 8) = 3;
    static Cycles cycles;
    if (Run(cycles) == 0) {
        Send("\0\0\0\0", 4);
    }
    for (;;) {
    }
}

extern "C" __attribute__((section(".vectors"), used)) void* const vectors[] = {stack_top, reinterpret_cast<void*>(reset)};
