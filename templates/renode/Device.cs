// SPDX-License-Identifier: Apache-2.0
// Base class of a PE's devices: named registers, one core, and delayed actions.
// C# 7.0 at most, because Renode compiles this file with its own compiler.
using System;
using Antmicro.Renode.Core;
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public abstract class Device : BasicDoubleWordPeripheral, IKnownSize
    {
        protected Device(IMachine machine, CortexM cpu) : base(machine)
        {
            this.cpu = cpu;
        }

        public override void Reset()
        {
            base.Reset();
            resets++;
        }

        public long Size { get { return 0x1000; } }

        // Run an action after some cycles, unless the board restarts first.
        protected void After(ulong cycles, Action action)
        {
            // The delay is exact to the nanosecond in Renode 1.16, to the microsecond in 1.15, and never zero.
            var delay = TimeInterval.FromCPUCycles(cycles, cpu.PerformanceInMips, out ulong rest);
            var begun = resets;
            machine.ScheduleAction(delay.Ticks > 0 ? delay : TimeInterval.FromTicks(1), now =>
            {
                if(begun == resets)
                {
                    action();
                }
            });
        }

        protected ulong Cycles()
        {
            // Synchronise only while a core runs. The Monitor also reads registers between runs.
            if(sysbus.TryGetCurrentCPU(out var current))
            {
                current.SyncTime();
            }
            return cpu.TimeHandle.TotalElapsedTime.ToCPUCycles(cpu.PerformanceInMips, out var _);
        }

        protected readonly CortexM cpu;

        private uint resets;
    }
}
