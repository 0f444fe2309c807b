// The timer: boards/pe-mesh.md, section 2. Renode gives each instruction one cycle, so what is not an instruction is sleep.
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Peripherals.CPU;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class Timer : IDoubleWordPeripheral, IKnownSize
    {
        public Timer(CortexM cpu)
        {
            this.cpu = cpu;
        }

        public void Reset()
        {
            latched = 0;
        }

        public uint ReadDoubleWord(long offset)
        {
            switch(offset)
            {
            case CyclesLow:
                return Latch(Cycles());
            case InstructionsLow:
                return Latch(cpu.ExecutedInstructions);
            case SleepLow:
                return Latch(Asleep());
            case CyclesHigh:
            case InstructionsHigh:
            case SleepHigh:
                return latched;
            default:
                return 0;
            }
        }

        public void WriteDoubleWord(long offset, uint value)
        {
            // All read only.
        }

        public long Size { get { return 0x1000; } }

        private ulong Cycles()
        {
            cpu.SyncTime();
            return cpu.TimeHandle.TotalElapsedTime.ToCPUCycles(cpu.PerformanceInMips, out var _);
        }

        private ulong Asleep()
        {
            ulong cycles = Cycles(), instructions = cpu.ExecutedInstructions;
            return cycles > instructions ? cycles - instructions : 0;
        }

        private uint Latch(ulong value)
        {
            latched = (uint)(value >> 32);
            return (uint)value;
        }

        private uint latched;
        private readonly CortexM cpu;

        private const long CyclesLow = 0x00, CyclesHigh = 0x04, InstructionsLow = 0x08, InstructionsHigh = 0x0C, SleepLow = 0x10, SleepHigh = 0x14;
    }
}
