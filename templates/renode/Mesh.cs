// SPDX-License-Identifier: Apache-2.0
// The mesh: routes and latencies of messages, and the DRAM of its chips. boards/pe-mesh.md, sections 4 and 4.3.
// Links are never busy here. npukit's own emulator models contention.
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
        public Mesh(uint chipColumns, uint chipRows, uint columns, uint rows, uint setupCycles, uint hopCycles, uint chipHopCycles,
                    uint portBytesPerCycle, uint chipLinkBytesPer100Cycles, uint dramBytes, uint dramBytesPerCycle, uint dramLatencyCycles,
                    string deadLinks)
        {
            this.chipColumns = chipColumns;
            this.columns = columns;
            this.rows = rows;
            this.hopCycles = hopCycles;
            this.chipHopCycles = chipHopCycles;
            this.chipLinkBytesPer100Cycles = chipLinkBytesPer100Cycles;
            this.dramBytesPerCycle = dramBytesPerCycle;
            this.dramLatencyCycles = dramLatencyCycles;
            SetupCycles = setupCycles;
            FlitBytes = portBytesPerCycle;
            DramBytes = dramBytes;
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
            return IsDram(place) ? place - DramOfChip < Chips && DramBytes > 0 : pes.ContainsKey(place);
        }

        public bool Reaches(uint from, uint to)
        {
            return Way(from, to).All(step => !dead.Contains(step[0] + "-" + step[1]) && !dead.Contains(step[1] + "-" + step[0]));
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

        // Cycles of a request until the source answers.
        public ulong RequestCycles(uint from, uint source)
        {
            return HeadCycles(from, source) + (IsDram(source) ? dramLatencyCycles : 0);
        }

        // Cycles from the departure of the head until the last flit is stored.
        public ulong TransferCycles(uint from, uint to, ulong flits)
        {
            if(from == to)
            {
                return 2 * flits;
            }
            var bytes = 100 * flits * FlitBytes;
            var border = Way(from, to).Any(step => ChipOf(step[0]) != ChipOf(step[1]));
            ulong pace = border ? Math.Min(chipLinkBytesPer100Cycles, 100 * FlitBytes) : 100 * FlitBytes;
            if(IsDram(from) || IsDram(to))
            {
                pace = Math.Min(pace, 100 * dramBytesPerCycle);
            }
            return HeadCycles(from, to) + (bytes + pace - 1) / pace;
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

        public readonly uint SetupCycles, FlitBytes, DramBytes, Chips;

        public uint Pes { get { return Chips * columns * rows; } }

        private ulong HeadCycles(uint from, uint to)
        {
            return Way(from, to).Aggregate(0UL, (sum, step) => sum + (ChipOf(step[0]) == ChipOf(step[1]) ? hopCycles : chipHopCycles));
        }

        // Links from router to router: along x, then along y, first on the grid of chips.
        private IEnumerable<uint[]> Way(uint from, uint to)
        {
            uint at = Router(from), end = Router(to);
            while(at != end)
            {
                var next = Next(at, end);
                yield return new[] { at, next };
                at = next;
            }
        }

        private uint Router(uint place)
        {
            return IsDram(place) ? (place - DramOfChip) * columns * rows : place;
        }

        private uint Next(uint at, uint end)
        {
            long chip = ChipOf(at), endChip = ChipOf(end), x = at % columns, y = at / columns % rows;
            long acrossChips = endChip % chipColumns - chip % chipColumns, downChips = endChip / chipColumns - chip / chipColumns;
            long across = end % columns - x, down = end / columns % rows - y;
            if(acrossChips != 0 || (downChips == 0 && across != 0))
            {
                x += Math.Sign(acrossChips != 0 ? acrossChips : across);
                chip += x < 0 ? -1 : x == columns ? 1 : 0;
            }
            else
            {
                y += Math.Sign(downChips != 0 ? downChips : down);
                chip += y < 0 ? -chipColumns : y == rows ? chipColumns : 0;
            }
            return (uint)((chip * rows + (y + rows) % rows) * columns + (x + columns) % columns);
        }

        private Dram Dram(uint place)
        {
            if(!drams.ContainsKey(place))
            {
                drams.Add(place, new Dram());
            }
            return drams[place];
        }

        private readonly uint chipColumns, columns, rows, hopCycles, chipHopCycles, chipLinkBytesPer100Cycles, dramBytesPerCycle, dramLatencyCycles;
        private readonly HashSet<string> dead;
        private readonly Dictionary<uint, IMeshPe> pes = new Dictionary<uint, IMeshPe>();
        private readonly Dictionary<uint, Dram> drams = new Dictionary<uint, Dram>();

        public const uint DramOfChip = 0x80000000, ThisChip = 0x40000000, NoPlace = 0x7FFFFFFF;
    }

    // Sparse memory of gigabytes. Bytes never written read as 0.
    public class Dram
    {
        public byte[] Read(long address, int count)
        {
            var data = new byte[count];
            for(int at = 0, part; at < count; at += part)
            {
                part = PartOnPage(address + at, count - at);
                byte[] page;
                if(pages.TryGetValue((address + at) / PageBytes, out page))
                {
                    Buffer.BlockCopy(page, (int)((address + at) % PageBytes), data, at, part);
                }
            }
            return data;
        }

        public void Write(long address, byte[] data)
        {
            for(int at = 0, part; at < data.Length; at += part)
            {
                part = PartOnPage(address + at, data.Length - at);
                byte[] page;
                if(!pages.TryGetValue((address + at) / PageBytes, out page))
                {
                    pages.Add((address + at) / PageBytes, page = new byte[PageBytes]);
                }
                Buffer.BlockCopy(data, at, page, (int)((address + at) % PageBytes), part);
            }
        }

        private static int PartOnPage(long address, int count)
        {
            return (int)Math.Min(count, PageBytes - address % PageBytes);
        }

        private readonly Dictionary<long, byte[]> pages = new Dictionary<long, byte[]>();

        private const int PageBytes = 0x10000;
    }
}
