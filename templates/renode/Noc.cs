// SPDX-License-Identifier: Apache-2.0
// A PE's network-on-chip registers, DMA engine and counted flags: boards/pe-mesh.md, sections 4.1 and 4.2.
using System;
using System.Collections.Generic;
using System.Linq;
using Antmicro.Renode.Core;
using Antmicro.Renode.Core.Structure.Registers;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.Memory;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    // Registers and chains. PEs run in turns (see run.resc), so there are no locks.
    public class Noc : Device, IMeshPe
    {
        public Noc(IMachine machine, CortexM cpu, MappedMemory sram, Mesh mesh, uint pe, uint flags) : base(machine, cpu)
        {
            this.mesh = mesh;
            this.pe = pe;
            Flags = new uint[flags];
            Sram = sram;
            mesh.Join(pe, this);
            DefineRegisters();
        }

        public override void Reset()
        {
            base.Reset();
            chains.Clear();
            Array.Clear(Flags, 0, Flags.Length);
            Completed = Error = 0;
        }

        public void Count(uint flag)
        {
            if(flag != NocDescriptor.NoFlag)
            {
                Flags[flag]++;
                cpu.SetEventFlag(true);
            }
        }

        public bool Busy { get { return chains.Count > 0; } }

        public uint Completed { get; private set; }

        public uint Error { get; private set; }

        public uint[] Flags { get; private set; }

        public MappedMemory Sram { get; private set; }

        private void DefineRegisters()
        {
            Registers.Doorbell.Define(this)
                .WithValueField(0, 32, FieldMode.Write, name: "FIRST_DESCRIPTOR", writeCallback: (_, address) => Ring((uint)address));
            Registers.Status.Define(this)
                .WithFlag(0, FieldMode.Read, name: "BUSY", valueProviderCallback: _ => Busy)
                .WithFlag(1, FieldMode.Read, name: "ERROR", valueProviderCallback: _ => Error != 0);
            Registers.Completed.Define(this)
                .WithValueField(0, 32, FieldMode.Read, name: "COMPLETED", valueProviderCallback: _ => Completed);
            Registers.Error.Define(this)
                .WithValueField(0, 32, name: "ERROR", valueProviderCallback: _ => Error, writeCallback: (_, __) => Error = 0);
            Registers.Pe.Define(this)
                .WithValueField(0, 32, FieldMode.Read, name: "PE", valueProviderCallback: _ => pe);
            Registers.Pes.Define(this)
                .WithValueField(0, 32, FieldMode.Read, name: "PES", valueProviderCallback: _ => mesh.Pes);
            Registers.Chip.Define(this)
                .WithValueField(0, 32, FieldMode.Read, name: "CHIP", valueProviderCallback: _ => mesh.ChipOf(pe));
            Registers.Flag.DefineMany(this, (uint)Flags.Length, (register, number) => register
                .WithValueField(0, 32, name: "FLAG" + number, valueProviderCallback: _ => Flags[number],
                                writeCallback: (_, value) => Flags[number] = (uint)value));
        }

        private void Ring(uint address)
        {
            if(chains.Count == QueueLength)
            {
                Fail(ErrorQueueFull, address);
                return;
            }
            chains.Enqueue(address);
            if(chains.Count == 1)
            {
                Begin(address, 1);
            }
        }

        // Start a descriptor, with its fetch some cycles from now.
        private void Begin(uint address, ulong wait)
        {
            NocDescriptor descriptor = null;
            var fault = ErrorPlace;
            if(address % 16 == 0 && address <= Sram.Size - NocDescriptor.Bytes)
            {
                descriptor = new NocDescriptor(Sram.ReadBytes(address, NocDescriptor.Bytes), mesh, pe);
                fault = descriptor.Check(mesh, pe);
            }
            if(fault != 0)
            {
                After(wait + mesh.SetupCycles, () => Fail(fault, address));
                return;
            }
            Send(descriptor, address, wait);
        }

        private void Send(NocDescriptor descriptor, uint address, ulong wait)
        {
            var groups = descriptor.Groups(mesh, pe);
            var times = new MessageTimes(mesh, pe, descriptor, groups, group => descriptor.Check(mesh, pe, (uint)Flags.Length, groups[group], group == 0));
            byte[][] rows = null;
            if(times.Read != NocClock.Never)
            {
                After(wait + times.Read, () => rows = rows ?? descriptor.Read(mesh)); // before a write that arrives in the same cycle
            }
            if(times.Done != NocClock.Never)
            {
                After(wait + times.Done, () => SourceDone(descriptor, Math.Max(times.Idle, times.Done) - times.Done));
            }
            if(times.Error != 0)
            {
                After(wait + times.ErrorCycle, () => Fail(times.Error, address));
            }
            foreach(var arrival in times.Arrivals)
            {
                // Of several entries of a group with the same PE the first counts.
                var to = groups[arrival.Group].First(place => place.Pe == arrival.Place);
                After(wait + arrival.Cycle, () =>
                {
                    rows = rows ?? descriptor.Read(mesh);
                    descriptor.Write(mesh, to, rows);
                    if(!Mesh.IsDram(to.Pe))
                    {
                        mesh.At(to.Pe).Count(descriptor.DestinationFlag);
                    }
                });
            }
        }

        private void SourceDone(NocDescriptor descriptor, ulong wait)
        {
            Completed++;
            Count(descriptor.SourceFlag);
            if(descriptor.Next == 0 && chains.Count > 0)
            {
                chains.Dequeue();
            }
            if(chains.Count > 0)
            {
                Begin(descriptor.Next != 0 ? descriptor.Next : chains.Peek(), wait);
            }
        }

        private void Fail(uint number, uint address)
        {
            var level = number == ErrorQueueFull ? LogLevel.Debug : LogLevel.Error; // software may try again
            this.Log(level, "DMA of PE {0}: error {1} at descriptor 0x{2:X}", pe, number, address);
            Error = Error != 0 ? Error : number;
            if(number != ErrorQueueFull)
            {
                chains.Clear();
                cpu.SetEventFlag(true);
            }
        }

        private readonly uint pe;
        private readonly Queue<uint> chains = new Queue<uint>(); // the running chain is first
        private readonly Mesh mesh;

        private const uint ErrorQueueFull = 1, ErrorPlace = 2;
        private const int QueueLength = 8;

        private enum Registers : long
        {
            Doorbell = 0x00,
            Status = 0x04,
            Completed = 0x08,
            Error = 0x0C,
            Pe = 0x10,
            Pes = 0x14,
            Chip = 0x18,
            Flag = 0x100,
        }
    }

    public struct NocPlace
    {
        public uint Pe, Address;
    }

    // A two-dimensional copy to one or several places.
    public class NocDescriptor
    {
        public NocDescriptor(byte[] words, Mesh mesh, uint pe)
        {
            Func<int, uint> word = n => BitConverter.ToUInt32(words, 4 * n);
            Next = word(0);
            kind = word(1) & 0xFF;
            Multicast = (word(1) & MulticastBit) != 0;
            SourcePe = mesh.OnBoard(word(2), pe);
            Source = word(3);
            destination = new NocPlace { Pe = Multicast ? word(4) : mesh.OnBoard(word(4), pe), Address = word(5) };
            RowBytes = (int)(word(6) & 0xFFFF);
            Rows = (int)(word(6) >> 16);
            SourceStride = (int)word(7);
            DestinationStride = (int)word(8);
            SourceFlag = word(9) & 0xFF;
            DestinationFlag = word(9) >> 8 & 0xFF;
        }

        // The error code of the kind or of the list as a whole, or 0.
        public uint Check(Mesh mesh, uint pe)
        {
            var outside = destination.Address == 0 || destination.Pe % 4 != 0 || destination.Pe + 8L * destination.Address > mesh.At(pe).Sram.Size;
            return kind != Copy ? ErrorKind : Multicast && outside ? ErrorAddress : 0;
        }

        // The error code of the first fault of a group of destinations, or 0.
        public uint Check(Mesh mesh, uint pe, uint flags, NocPlace[] group, bool first)
        {
            if(first && !(mesh.Exists(SourcePe) && mesh.Reaches(pe, SourcePe)))
            {
                return ErrorRoute;
            }
            if(first && !LiesIn(mesh, SourcePe, Source, SourceStride))
            {
                return ErrorAddress;
            }
            foreach(var to in group)
            {
                if((Multicast && Mesh.IsDram(to.Pe)) || !mesh.Exists(to.Pe) || !mesh.Reaches(SourcePe, to.Pe))
                {
                    return ErrorRoute;
                }
                if(!LiesIn(mesh, to.Pe, to.Address, DestinationStride))
                {
                    return ErrorAddress;
                }
            }
            var fine = (SourceFlag == NoFlag || (SourceFlag < flags && SourcePe == pe)) && (DestinationFlag == NoFlag || DestinationFlag < flags);
            return fine ? 0 : ErrorFlag;
        }

        // The destinations, in groups of at most 60.
        public NocPlace[][] Groups(Mesh mesh, uint pe)
        {
            var places = Destinations(mesh, pe).ToArray();
            return Enumerable.Range(0, (places.Length + MostInGroup - 1) / MostInGroup)
                .Select(group => places.Skip(group * MostInGroup).Take(MostInGroup).ToArray()).ToArray();
        }

        public byte[][] Read(Mesh mesh)
        {
            return Enumerable.Range(0, Rows).Select(row => mesh.Read(SourcePe, Source + (long)row * SourceStride, RowBytes)).ToArray();
        }

        public void Write(Mesh mesh, NocPlace to, byte[][] data)
        {
            for(var row = 0; row < Rows; row++)
            {
                mesh.Write(to.Pe, to.Address + (long)row * DestinationStride, data[row]);
            }
        }

        public readonly uint Next, SourcePe, Source, SourceFlag, DestinationFlag;
        public readonly bool Multicast;
        public readonly int RowBytes, Rows, SourceStride, DestinationStride;

        public const int Bytes = 48;
        public const uint NoFlag = 0xFF;

        private IEnumerable<NocPlace> Destinations(Mesh mesh, uint pe)
        {
            if(!Multicast)
            {
                return new[] { destination };
            }
            var list = mesh.At(pe).Sram.ReadBytes(destination.Pe, 8 * (int)destination.Address);
            return Enumerable.Range(0, (int)destination.Address).Select(
                i => new NocPlace { Pe = mesh.OnBoard(BitConverter.ToUInt32(list, 8 * i), pe), Address = BitConverter.ToUInt32(list, 8 * i + 4) });
        }

        private bool LiesIn(Mesh mesh, uint place, uint address, int stride)
        {
            long size = Mesh.IsDram(place) ? mesh.DramFigures.Bytes : mesh.At(place).Sram.Size, span = (long)(Rows - 1) * stride;
            return Rows == 0 || RowBytes == 0 || (address + Math.Min(span, 0) >= 0 && address + Math.Max(span, 0) + RowBytes <= size);
        }

        private readonly uint kind;
        private readonly NocPlace destination;

        private const uint Copy = 1, MulticastBit = 1 << 8;
        private const uint ErrorKind = 3, ErrorRoute = 4, ErrorAddress = 5, ErrorFlag = 6;
        private const int MostInGroup = 60;
    }
}
