// SPDX-License-Identifier: Apache-2.0
// The library of a device in RTL. The compiler's command defines DEVICE as NAME_device.
#include "Vdevice.h"
#include "rtl_device.h"

typedef RtlModel<Vdevice> Model;
extern "C" DEVICE_EXPORT const device_model DEVICE;
const device_model DEVICE = {DEVICE_ABI, sizeof(Model::State), Model::start, Model::read,
                             Model::write, nullptr, Model::tick, Model::end};
