// SPDX-License-Identifier: Apache-2.0
// What the devices of a PE have in common: registers with names, one core, and things that they do later.
// C# 7.0 at most: Renode compiles this with whatever compiler it brings along.
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

        // Unless the board restarts before.
        protected void After(ulong cycles, Action action)
        {
            // To the nanosecond in Renode 1.16, to the microsecond in 1.15, but never at once.
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
            // Only while a core runs: the Monitor asks in between.
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
