// The root PE's flash and boot controller: boards/pe-mesh.md, section 7. What it holds is the memory behind its window.
// In Renode the board is loaded from outside: RESTART has that done again (see run.resc), and nothing is started from the flash.
using System;
using System.Linq;
using Antmicro.Renode.Core;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.Memory;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class Flash : IDoubleWordPeripheral, IKnownSize
    {
        public Flash(IMachine machine, CortexM cpu, MappedMemory memory, uint pageBytes, uint loaderBytes, uint eraseCycles, uint programCycles)
        {
            this.machine = machine;
            this.cpu = cpu;
            this.memory = memory;
            this.pageBytes = pageBytes;
            this.loaderBytes = loaderBytes;
            this.eraseCycles = eraseCycles;
            this.programCycles = programCycles;
            memory.WriteBytes(0, Erased((int)memory.Size));
        }

        // An operation under way ends here, and has changed nothing.
        public void Reset()
        {
            resets++;
            busy = false;
            address = error = 0;
            cause = restarts ? CauseRestart : CausePower;
            restarts = false;
        }

        public uint ReadDoubleWord(long offset)
        {
            switch(offset)
            {
            case Address:
                return address;
            case Status:
                return (busy ? 1u : 0u) | (error != 0 ? 2u : 0u);
            case Error:
                return error;
            case Cause:
                return cause;
            default:
                return 0;
            }
        }

        public void WriteDoubleWord(long offset, uint value)
        {
            switch(offset)
            {
            case Erase:
                ErasePage(value);
                break;
            case Address:
                address = value;
                break;
            case Data:
                Program(value);
                break;
            case Error:
                error = 0;
                break;
            case Start:
                Fail(ErrorList);
                break;
            case Restart:
                restarts = true;
                machine.RequestReset();
                break;
            }
        }

        public long Size { get { return 0x1000; } }

        private void ErasePage(uint place)
        {
            if(MayChange(place, pageBytes))
            {
                Begin(eraseCycles, place, Erased((int)pageBytes));
            }
        }

        private void Program(uint value)
        {
            if(!MayChange(address, WordBytes))
            {
                return;
            }
            if((value & ~BitConverter.ToUInt32(memory.ReadBytes(address, (int)WordBytes), 0)) != 0)
            {
                Fail(ErrorNotErased);
                return;
            }
            Begin(programCycles, address, BitConverter.GetBytes(value));
            address += WordBytes;
        }

        private bool MayChange(uint place, uint alignment)
        {
            var wrong = busy ? ErrorBusy
                : place % alignment != 0 || place >= memory.Size ? ErrorPlace
                : place < loaderBytes ? ErrorProtected : 0;
            Fail(wrong);
            return wrong == 0;
        }

        // The change is there as a whole, at the end.
        private void Begin(uint cycles, uint place, byte[] bytes)
        {
            var begun = resets;
            busy = true;
            var delay = TimeInterval.FromCPUCycles(cycles, cpu.PerformanceInMips, out ulong rest);
            machine.ScheduleAction(delay.Ticks > 0 ? delay : TimeInterval.FromTicks(1), now =>
            {
                if(begun == resets)
                {
                    memory.WriteBytes(place, bytes);
                    busy = false;
                    cpu.SetEventFlag(true);
                }
            });
        }

        private void Fail(uint number)
        {
            if(number != 0)
            {
                this.Log(LogLevel.Error, "Flash: error {0}", number);
                error = error != 0 ? error : number;
            }
        }

        private static byte[] Erased(int bytes)
        {
            return Enumerable.Repeat((byte)0xFF, bytes).ToArray();
        }

        private bool busy, restarts;
        private uint address, error, cause, resets;
        private readonly uint pageBytes, loaderBytes, eraseCycles, programCycles;
        private readonly IMachine machine;
        private readonly CortexM cpu;
        private readonly MappedMemory memory;

        private const long Erase = 0x00, Address = 0x04, Data = 0x08, Status = 0x0C, Error = 0x10, Cause = 0x14, Start = 0x1C, Restart = 0x20;
        private const uint ErrorBusy = 1, ErrorPlace = 2, ErrorNotErased = 3, ErrorProtected = 4, ErrorList = 6;
        private const uint CausePower = 0, CauseRestart = 2, WordBytes = 4;
    }
}
