// SPDX-License-Identifier: Apache-2.0
// The MAC array's registers and chains: boards/pe-mesh.md, section 3.1. Its figures come from the board file, through the platform description.
using System;
using Antmicro.Renode.Core;
using Antmicro.Renode.Core.Structure.Registers;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.Memory;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class MacArray : Device
    {
        public MacArray(IMachine machine, CortexM cpu, MappedMemory sram, uint width, uint lanes, uint portBytes, uint requantisers,
                        uint windowRows, uint parameterBlocks, uint parameterBytesPerChannel, uint accumulatorBits, uint setupCycles,
                        uint chainCycles, uint drainCycles) : base(machine, cpu)
        {
            this.sram = sram;
            figures = new MacArrayFigures
            {
                Width = width, Lanes = lanes, PortBytes = portBytes, Requantisers = requantisers, WindowRows = windowRows,
                ParameterBlocks = parameterBlocks, ParameterBytesPerChannel = parameterBytesPerChannel,
                AccumulatorBits = accumulatorBits, SetupCycles = setupCycles, ChainCycles = chainCycles, DrainCycles = drainCycles
            };
            DefineRegisters();
        }

        public override void Reset()
        {
            base.Reset();
            Busy = false;
            Completed = BusyCycles = Error = ErrorCommand = 0;
        }

        public bool Busy { get; private set; }

        public uint Completed { get; private set; }

        public uint BusyCycles { get; private set; }

        public uint Error { get; private set; }

        public uint ErrorCommand { get; private set; }

        private void DefineRegisters()
        {
            Registers.Doorbell.Define(this)
                .WithValueField(0, 32, FieldMode.Write, name: "FIRST_COMMAND", writeCallback: (_, address) => Ring((uint)address));
            Registers.Status.Define(this)
                .WithFlag(0, FieldMode.Read, name: "BUSY", valueProviderCallback: _ => Busy)
                .WithFlag(1, FieldMode.Read, name: "ERROR", valueProviderCallback: _ => Error != 0);
            Registers.Completed.Define(this)
                .WithValueField(0, 32, FieldMode.Read, name: "COMPLETED", valueProviderCallback: _ => Completed);
            Registers.BusyCycles.Define(this)
                .WithValueField(0, 32, FieldMode.Read, name: "BUSY_CYCLES", valueProviderCallback: _ => BusyCycles);
            Registers.Error.Define(this)
                .WithValueField(0, 32, name: "ERROR", valueProviderCallback: _ => Error, writeCallback: (_, __) => Error = 0);
            Registers.ErrorCommand.Define(this)
                .WithValueField(0, 32, FieldMode.Read, name: "ERROR_COMMAND", valueProviderCallback: _ => ErrorCommand);
        }

        private void Ring(uint address)
        {
            if(Busy)
            {
                Fail(ErrorBusy, address, "the doorbell while the array is busy");
            }
            else
            {
                Begin(address, true);
            }
        }

        // `first`: the command is the first of the chain.
        private void Begin(uint address, bool first)
        {
            MacArrayCommand command = null;
            uint fault = ErrorPlace;
            var what = "not 16-byte aligned, or outside SRAM";
            if(address % 16 == 0 && address <= sram.Size - MacArrayCommand.Bytes)
            {
                command = new MacArrayCommand(sram.ReadBytes(address, MacArrayCommand.Bytes));
                fault = command.Check(figures, sram.Size, out what);
            }
            Busy = true;
            if(fault != 0)
            {
                After(first ? figures.SetupCycles : 0, () => Refuse(fault, address, what, first));
                return;
            }
            var cycles = new MacArrayCycles(figures, command).All(first);
            After(cycles, () => Finish(command, cycles));
        }

        // The check of a chain's first command takes its setup. A later command is checked while the command before runs.
        private void Refuse(uint fault, uint address, string what, bool first)
        {
            BusyCycles += first ? figures.SetupCycles : 0;
            Fail(fault, address, what);
            Stop();
        }

        // Operands are read and results written only at the end, so a missing wait in software shows.
        private void Finish(MacArrayCommand command, ulong cycles)
        {
            var memory = sram.ReadBytes(0, (int)sram.Size);
            new MacArrayArithmetic(command, figures, memory).Execute((at, bytes) => sram.WriteBytes(at, bytes));
            BusyCycles += (uint)cycles;
            Completed++;
            if(command.Next != 0)
            {
                Begin(command.Next, false);
            }
            else
            {
                Stop();
            }
        }

        private void Stop()
        {
            Busy = false;
            cpu.SetEventFlag(true);
        }

        private void Fail(uint number, uint address, string what)
        {
            this.Log(LogLevel.Error, "MAC array: error {0} at command 0x{1:X}: {2}", number, address, what);
            if(Error == 0)
            {
                Error = number;
                ErrorCommand = address;
            }
        }

        private readonly MacArrayFigures figures;
        private readonly MappedMemory sram;

        private const uint ErrorBusy = 1, ErrorPlace = 2;

        private enum Registers : long
        {
            Doorbell = 0x00,
            Status = 0x04,
            Completed = 0x08,
            BusyCycles = 0x0C,
            Error = 0x10,
            ErrorCommand = 0x14,
        }
    }
}
