// SPDX-License-Identifier: Apache-2.0
// The mesh: its figures, routes, and the DRAM of its chips. boards/pe-mesh.md, section 4.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using Antmicro.Renode.Peripherals.Memory;
using Antmicro.Renode.Utilities;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    // The parts of a PE that messages can access.
    public interface IMeshPe
    {
        MappedMemory Sram { get; }

        // Increment a flag.
        void Count(uint flag);
    }

    public class Mesh : IPeripheral
    {
        // `deadLinks`: pairs of neighbours, such as "0-1 4-8".
        public Mesh(uint chipColumns, uint chipRows, uint columns, uint rows, uint portBytesPerCycle, uint setupCycles, uint packetFlits,
                    uint bufferPackets, uint hopCycles, uint chipHopCycles, uint chipLinksPerBorder, uint chipLinkBytesPer100Cycles,
                    uint borderPackets, uint dramBytes, uint dramBytesPerCycle, uint dramLatencyCycles, uint dramBurstBytes,
                    uint dramBanks, uint dramRowBytes, uint dramRowCycles, string deadLinks)
        {
            this.chipColumns = chipColumns;
            this.columns = columns;
            this.rows = rows;
            this.chipLinkBytesPer100Cycles = chipLinkBytesPer100Cycles;
            FlitBytes = portBytesPerCycle;
            SetupCycles = setupCycles;
            PacketFlits = packetFlits;
            BufferPackets = bufferPackets;
            HopCycles = hopCycles;
            ChipHopCycles = chipHopCycles;
            ChipLinksPerBorder = chipLinksPerBorder;
            BorderPackets = borderPackets;
            DramFigures = new DramFigures
            {
                Bytes = dramBytes, BytesPerCycle = dramBytesPerCycle, LatencyCycles = dramLatencyCycles, BurstBytes = dramBurstBytes,
                Banks = dramBanks, RowBytes = dramRowBytes, RowCycles = dramRowCycles
            };
            Chips = chipColumns * chipRows;
            dead = new HashSet<string>(deadLinks.Split(new[] { ' ' }, StringSplitOptions.RemoveEmptyEntries));
        }

        public void Reset()
        {
            drams.Clear();
        }

        // Load the initial contents of a chip's DRAM from a file.
        public void LoadDram(ReadFilePath file, uint chip = 0)
        {
            Dram(DramOfChip + chip).Write(0, File.ReadAllBytes(file));
        }

        public void Join(uint number, IMeshPe pe)
        {
            pes.Add(number, pe);
        }

        public IMeshPe At(uint number)
        {
            return pes[number];
        }

        public bool Exists(uint place)
        {
            return IsDram(place) ? place - DramOfChip < Chips && DramFigures.Bytes > 0 : pes.ContainsKey(place);
        }

        public bool Reaches(uint from, uint to)
        {
            for(uint at = Router(from), next; at != Router(to); at = next)
            {
                next = Neighbour(at, Output(at, to));
                if(dead.Contains(at + "-" + next) || dead.Contains(next + "-" + at))
                {
                    return false;
                }
            }
            return true;
        }

        public byte[] Read(uint place, long address, int count)
        {
            return IsDram(place) ? Dram(place).Read(address, count) : pes[place].Sram.ReadBytes(address, count);
        }

        public void Write(uint place, long address, byte[] data)
        {
            if(IsDram(place))
            {
                Dram(place).Write(address, data);
            }
            else
            {
                pes[place].Sram.WriteBytes(address, data);
            }
        }

        // The output of a router for a place: along x over the whole board, then along y.
        public int Output(uint pe, uint place)
        {
            uint end = Router(place);
            if(end == pe)
            {
                return IsDram(place) ? DramPort : PePort;
            }
            long across = (long)X(end) - X(pe), down = (long)Y(end) - Y(pe);
            return across > 0 ? East : across < 0 ? West : down > 0 ? South : North;
        }

        // The router at the other end of a link.
        public uint Neighbour(uint pe, int port)
        {
            uint x = X(pe) + (port == East ? 1u : 0) - (port == West ? 1u : 0), y = Y(pe) + (port == South ? 1u : 0) - (port == North ? 1u : 0);
            uint chip = y / rows * chipColumns + x / columns;
            return (chip * rows + y % rows) * columns + x % columns;
        }

        public bool LeavesChip(uint pe, int port)
        {
            return port != PePort && port != DramPort && ChipOf(pe) != ChipOf(Neighbour(pe, port));
        }

        public static int Opposite(int port)
        {
            return port == North ? South : port == South ? North : port == East ? West : East;
        }

        // Cycles of a packet on the link of a border.
        public ulong BorderCycles(uint flits)
        {
            return (100UL * flits * FlitBytes + chipLinkBytesPer100Cycles - 1) / chipLinkBytesPer100Cycles;
        }

        public uint ChipOf(uint pe)
        {
            return pe / (columns * rows);
        }

        // The board's number of a PE or DRAM, from its number in a descriptor of `pe`.
        public uint OnBoard(uint place, uint pe)
        {
            if((place & ThisChip) == 0)
            {
                return place;
            }
            uint number = place & ~(DramOfChip | ThisChip), chip = ChipOf(pe);
            if(IsDram(place))
            {
                return number == 0 ? DramOfChip + chip : NoPlace;
            }
            return number < columns * rows ? chip * columns * rows + number : NoPlace;
        }

        public static bool IsDram(uint place)
        {
            return (place & DramOfChip) != 0;
        }

        // The PE at whose router a place is.
        public uint Router(uint place)
        {
            return IsDram(place) ? (place - DramOfChip) * columns * rows : place;
        }

        public Dram Dram(uint place)
        {
            if(!drams.ContainsKey(place))
            {
                drams.Add(place, new Dram(DramFigures));
            }
            return drams[place];
        }

        public readonly uint FlitBytes, SetupCycles, PacketFlits, BufferPackets, HopCycles, ChipHopCycles, ChipLinksPerBorder, BorderPackets, Chips;
        public readonly DramFigures DramFigures;

        public uint Pes { get { return Chips * columns * rows; } }

        private uint X(uint pe)
        {
            return ChipOf(pe) % chipColumns * columns + pe % columns;
        }

        private uint Y(uint pe)
        {
            return ChipOf(pe) / chipColumns * rows + pe / columns % rows;
        }

        private readonly uint chipColumns, columns, rows, chipLinkBytesPer100Cycles;
        private readonly HashSet<string> dead;
        private readonly Dictionary<uint, IMeshPe> pes = new Dictionary<uint, IMeshPe>();
        private readonly Dictionary<uint, Dram> drams = new Dictionary<uint, Dram>();

        public const int PePort = 0, North = 1, East = 2, South = 3, West = 4, DramPort = 5, Ports = 6;
        public const uint DramOfChip = 0x80000000, ThisChip = 0x40000000, NoPlace = 0x7FFFFFFF;
    }
}
