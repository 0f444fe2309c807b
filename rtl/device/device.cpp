// SPDX-License-Identifier: Apache-2.0
// The library of a device in RTL. The compiler's command defines DEVICE as NAME_device.
#include "Vdevice.h"
#include "rtl_device.h"

typedef RtlModel<Vdevice> Model;
extern "C" DEVICE_EXPORT const device_model DEVICE;
const device_model DEVICE = {DEVICE_ABI, sizeof(Model::State), Model::start, Model::read,
                             Model::write, nullptr, Model::tick, Model::end};

#if VM_TRACE
// Write the waveform of a device from cycle `first` to `last`.
extern "C" DEVICE_EXPORT void device_waves(void *state, const char *file, uint64_t first, uint64_t last) {
  static_cast<Model::State *>(state)->device->waves.choose(file, first, last);
}
#endif
