// SPDX-License-Identifier: Apache-2.0
// The timer: boards/pe-mesh.md, section 2. Renode counts one cycle an instruction, so all other cycles are sleep.
using System;
using Antmicro.Renode.Core;
using Antmicro.Renode.Core.Structure.Registers;
using Antmicro.Renode.Peripherals.CPU;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class Timer : Device
    {
        public Timer(IMachine machine, CortexM cpu) : base(machine, cpu)
        {
            Count(Registers.CyclesLow, Registers.CyclesHigh, "CYCLES", Cycles);
            Count(Registers.InstructionsLow, Registers.InstructionsHigh, "INSTRUCTIONS", () => cpu.ExecutedInstructions);
            Count(Registers.SleepLow, Registers.SleepHigh, "SLEEP", Asleep);
        }

        public override void Reset()
        {
            base.Reset();
            latched = 0;
        }

        private ulong Asleep()
        {
            ulong cycles = Cycles(), instructions = cpu.ExecutedInstructions;
            return cycles > instructions ? cycles - instructions : 0;
        }

        // Define a counter of two words. Reading the low word latches the high word.
        private void Count(Registers low, Registers high, string name, Func<ulong> count)
        {
            low.Define(this).WithValueField(0, 32, FieldMode.Read, name: name, valueProviderCallback: _ => Latch(count()));
            high.Define(this).WithValueField(0, 32, FieldMode.Read, name: name + "_HIGH", valueProviderCallback: _ => latched);
        }

        private uint Latch(ulong value)
        {
            latched = (uint)(value >> 32);
            return (uint)value;
        }

        private uint latched;

        private enum Registers : long
        {
            CyclesLow = 0x00,
            CyclesHigh = 0x04,
            InstructionsLow = 0x08,
            InstructionsHigh = 0x0C,
            SleepLow = 0x10,
            SleepHigh = 0x14,
        }
    }
}
