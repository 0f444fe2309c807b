// The MAC array's registers and chains: boards/pe-mesh.md, section 3.1. Its figures come from the board file, through the platform description.
// C# 7.0 at most: Renode compiles this with whatever compiler it brings along.
using System;
using Antmicro.Renode.Core;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.Memory;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class MacArray : IDoubleWordPeripheral, IKnownSize
    {
        public MacArray(IMachine machine, CortexM cpu, MappedMemory sram, uint width, uint lanes, uint portBytes, uint setupCycles,
                        uint accumulatorBits, uint operandBytesPerLane, uint parameterBytesPerChannel)
        {
            this.machine = machine;
            this.cpu = cpu;
            this.sram = sram;
            figures = new MacArrayFigures
            {
                Width = width, Lanes = lanes, PortBytes = portBytes, SetupCycles = setupCycles, AccumulatorBits = accumulatorBits,
                OperandBytesPerLane = operandBytesPerLane, ParameterBytesPerChannel = parameterBytesPerChannel
            };
        }

        public void Reset()
        {
            resets++;
            busy = false;
            completed = busyCycles = error = errorCommand = 0;
        }

        public uint ReadDoubleWord(long offset)
        {
            switch(offset)
            {
            case Status:
                return (busy ? 1u : 0u) | (error != 0 ? 2u : 0u);
            case Completed:
                return completed;
            case BusyCycles:
                return busyCycles;
            case Error:
                return error;
            case ErrorCommand:
                return errorCommand;
            default:
                return 0;
            }
        }

        public void WriteDoubleWord(long offset, uint value)
        {
            if(offset == Error)
            {
                error = 0;
            }
            else if(offset == Doorbell && busy)
            {
                Fail(ErrorBusy, value);
            }
            else if(offset == Doorbell)
            {
                Begin(value);
            }
        }

        public long Size { get { return 0x1000; } }

        private void Begin(uint address)
        {
            var memory = sram.ReadBytes(0, (int)sram.Size);
            MacArrayCommand command = null;
            var fault = ErrorPlace;
            if(address % 16 == 0 && address <= memory.Length - MacArrayCommand.Bytes)
            {
                command = new MacArrayCommand(memory, (int)address);
                fault = command.Check(figures, memory.Length);
            }
            if(fault != 0)
            {
                Fail(fault, address);
                Stop();
                return;
            }
            busy = true;
            var cycles = command.Cycles(figures);
            // To the nanosecond in Renode 1.16, to the microsecond in 1.15, but never at once.
            var delay = TimeInterval.FromCPUCycles(cycles, cpu.PerformanceInMips, out ulong rest);
            var begun = resets;
            machine.ScheduleAction(delay.Ticks > 0 ? delay : TimeInterval.FromTicks(1), now =>
            {
                if(begun == resets)
                {
                    Finish(command, cycles);
                }
            });
        }

        // The operands are read and the results appear only now, so that software that does not wait is found out.
        private void Finish(MacArrayCommand command, ulong cycles)
        {
            var memory = sram.ReadBytes(0, (int)sram.Size);
            new MacArrayArithmetic(command, figures, memory).Execute((at, bytes) => sram.WriteBytes(at, bytes));
            busyCycles += (uint)cycles;
            completed++;
            if(command.Next != 0)
            {
                Begin(command.Next);
            }
            else
            {
                Stop();
            }
        }

        private void Stop()
        {
            busy = false;
            cpu.SetEventFlag(true);
        }

        private void Fail(uint number, uint address)
        {
            this.Log(LogLevel.Error, "MAC array: error {0} at command 0x{1:X}", number, address);
            if(error == 0)
            {
                error = number;
                errorCommand = address;
            }
        }

        private bool busy;
        private uint completed, busyCycles, error, errorCommand, resets;
        private readonly MacArrayFigures figures;
        private readonly IMachine machine;
        private readonly CortexM cpu;
        private readonly MappedMemory sram;

        private const long Doorbell = 0x00, Status = 0x04, Completed = 0x08, BusyCycles = 0x0C, Error = 0x10, ErrorCommand = 0x14;
        private const uint ErrorBusy = 1, ErrorPlace = 2;
    }
}
