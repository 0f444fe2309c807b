// SPDX-License-Identifier: Apache-2.0
// The root PE's flash and boot controller: boards/pe-mesh.md, section 7. Its contents are the memory behind its window.
// Renode's script loads the board: RESTART loads it again (see run.resc), and nothing starts from the flash.
using System;
using System.Linq;
using Antmicro.Renode.Core;
using Antmicro.Renode.Core.Structure.Registers;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.Memory;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class Flash : Device
    {
        public Flash(IMachine machine, CortexM cpu, MappedMemory memory, uint pageBytes, uint loaderBytes, uint onceBytes, uint eraseCycles,
                     uint programCycles) : base(machine, cpu)
        {
            this.memory = memory;
            this.pageBytes = pageBytes;
            this.loaderBytes = loaderBytes;
            this.onceBytes = onceBytes;
            this.eraseCycles = eraseCycles;
            this.programCycles = programCycles;
            memory.WriteBytes(0, Erased((int)memory.Size));
            DefineRegisters();
        }

        // An operation in progress is cancelled without effect.
        public override void Reset()
        {
            base.Reset();
            Busy = false;
            address = Error = 0;
            watchdogEnd = 0;
            Cause = nextCause;
            nextCause = CausePower;
        }

        public bool Busy { get; private set; }

        public uint Error { get; private set; }

        public uint Cause { get; private set; }

        private void DefineRegisters()
        {
            Registers.Erase.Define(this)
                .WithValueField(0, 32, FieldMode.Write, name: "PAGE", writeCallback: (_, place) => ErasePage((uint)place));
            Registers.Address.Define(this)
                .WithValueField(0, 32, name: "ADDRESS", valueProviderCallback: _ => address, writeCallback: (_, value) => address = (uint)value);
            Registers.Data.Define(this)
                .WithValueField(0, 32, FieldMode.Write, name: "WORD", writeCallback: (_, value) => Program((uint)value));
            Registers.Status.Define(this)
                .WithFlag(0, FieldMode.Read, name: "BUSY", valueProviderCallback: _ => Busy)
                .WithFlag(1, FieldMode.Read, name: "ERROR", valueProviderCallback: _ => Error != 0);
            Registers.Error.Define(this)
                .WithValueField(0, 32, name: "ERROR", valueProviderCallback: _ => Error, writeCallback: (_, __) => Error = 0);
            Registers.Cause.Define(this)
                .WithValueField(0, 32, FieldMode.Read, name: "CAUSE", valueProviderCallback: _ => Cause);
            Registers.Arm.Define(this)
                .WithValueField(0, 32, FieldMode.Write, name: "PE");
            Registers.Start.Define(this)
                .WithValueField(0, 32, FieldMode.Write, name: "LIST", writeCallback: (_, __) => Fail(ErrorList));
            Registers.Restart.Define(this)
                .WithValueField(0, 32, FieldMode.Write, name: "RESTART", writeCallback: (_, __) => RestartBoard(CauseRestart));
            Registers.Watchdog.Define(this)
                .WithValueField(0, 32, name: "CYCLES", valueProviderCallback: _ => CyclesLeft(), writeCallback: (_, value) => Watch((uint)value));
        }

        private void RestartBoard(uint cause)
        {
            nextCause = cause;
            machine.RequestReset();
        }

        private void Watch(uint cycles)
        {
            var end = cycles == 0 ? 0 : Cycles() + cycles;
            watchdogEnd = end;
            if(end != 0)
            {
                After(cycles, () =>
                {
                    if(watchdogEnd == end)
                    {
                        RestartBoard(CauseWatchdog);
                    }
                });
            }
        }

        // Cycles until the watchdog restarts the board; 0 if it is off.
        private uint CyclesLeft()
        {
            return watchdogEnd == 0 ? 0 : (uint)(watchdogEnd - Math.Min(Cycles(), watchdogEnd - 1));
        }

        private void ErasePage(uint place)
        {
            if(MayChange(place, pageBytes, loaderBytes))
            {
                Begin(eraseCycles, place, Erased((int)pageBytes));
            }
        }

        private void Program(uint value)
        {
            if(!MayChange(address, WordBytes, loaderBytes - onceBytes))
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

        private bool MayChange(uint place, uint alignment, uint first)
        {
            var wrong = Busy ? ErrorBusy
                : place % alignment != 0 || place >= memory.Size ? ErrorPlace
                : place < first ? ErrorProtected : 0;
            Fail(wrong);
            return wrong == 0;
        }

        // Start an operation. All bytes change together when it ends.
        private void Begin(uint cycles, uint place, byte[] bytes)
        {
            Busy = true;
            After(cycles, () =>
            {
                memory.WriteBytes(place, bytes);
                Busy = false;
                cpu.SetEventFlag(true);
            });
        }

        private void Fail(uint number)
        {
            if(number != 0)
            {
                this.Log(LogLevel.Error, "Flash: error {0}", number);
                Error = Error != 0 ? Error : number;
            }
        }

        private static byte[] Erased(int bytes)
        {
            return Enumerable.Repeat((byte)0xFF, bytes).ToArray();
        }

        private uint address, nextCause;
        private ulong watchdogEnd;
        private readonly uint pageBytes, loaderBytes, onceBytes, eraseCycles, programCycles;
        private readonly MappedMemory memory;

        private const uint ErrorBusy = 1, ErrorPlace = 2, ErrorNotErased = 3, ErrorProtected = 4, ErrorList = 6;
        private const uint CausePower = 0, CauseRestart = 2, CauseWatchdog = 3, WordBytes = 4;

        private enum Registers : long
        {
            Erase = 0x00,
            Address = 0x04,
            Data = 0x08,
            Status = 0x0C,
            Error = 0x10,
            Cause = 0x14,
            Arm = 0x18,
            Start = 0x1C,
            Restart = 0x20,
            Watchdog = 0x24,
        }
    }
}
