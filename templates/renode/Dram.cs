// SPDX-License-Identifier: Apache-2.0
// The DRAM of a chip: its bytes, and the times of accesses. boards/pe-mesh.md, section 4.7, without refresh.
using System;
using System.Collections.Generic;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public struct DramFigures
    {
        public uint Bytes, BytesPerCycle, LatencyCycles, BurstBytes, Banks, RowBytes, RowCycles;
    }

    // Sparse memory of gigabytes. Bytes never written read as 0.
    public class Dram
    {
        public Dram(DramFigures figures)
        {
            this.figures = figures;
        }

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

        // Open a row of the memory. False: it was open.
        public bool Open(long row)
        {
            long bank = row % figures.Banks, open;
            var opens = !openRows.TryGetValue(bank, out open) || open != row;
            openRows[bank] = row;
            return opens;
        }

        private static int PartOnPage(long address, int count)
        {
            return (int)Math.Min(count, PageBytes - address % PageBytes);
        }

        private readonly DramFigures figures;
        private readonly Dictionary<long, byte[]> pages = new Dictionary<long, byte[]>();
        private readonly Dictionary<long, long> openRows = new Dictionary<long, long>();

        private const int PageBytes = 0x10000;
    }

    // The times of a message's accesses to a DRAM.
    public class DramTimes
    {
        public DramTimes(Dram dram, DramFigures figures)
        {
            this.dram = dram;
            this.figures = figures;
        }

        // Access the rows of a packet, from a cycle on. `address`: of the message's first row.
        public void Access(Packet packet, uint address, int stride, ulong now, ulong known)
        {
            bus = now;
            bursts = 0;
            Begin = NocClock.Never;
            for(var row = packet.Row; row < packet.Row + packet.Rows; row++)
            {
                long at = address + (long)row * stride + packet.Offset, end = at + packet.RowBytes;
                while(at < end)
                {
                    var part = Math.Min(end, (at / figures.RowBytes + 1) * figures.RowBytes);
                    AccessRow(at, part, known);
                    at = part;
                }
            }
            Begin = Math.Min(Begin, Math.Max(now, bus));
            End = packet.Rows == 0 ? now + 1 : BusFree();
        }

        // The beginning of the first burst, and the end of the last.
        public ulong Begin { get; private set; }

        public ulong End { get; private set; }

        private void AccessRow(long from, long end, ulong known)
        {
            long row = from / figures.RowBytes, bank = row % figures.Banks;
            ulong free;
            bankFree.TryGetValue(bank, out free);
            var open = Math.Max(free, known) + figures.RowCycles;
            if(dram.Open(row) && open >= BusFree())
            {
                bus = open;
                bursts = 0;
            }
            Begin = Math.Min(Begin, bus);
            bursts += (ulong)((end - 1) / figures.BurstBytes - from / figures.BurstBytes + 1);
            bankFree[bank] = BusFree();
        }

        private ulong BusFree()
        {
            return bus + (bursts * figures.BurstBytes + figures.BytesPerCycle - 1) / figures.BytesPerCycle;
        }

        private readonly Dram dram;
        private readonly DramFigures figures;
        private readonly Dictionary<long, ulong> bankFree = new Dictionary<long, ulong>();
        private ulong bus, bursts; // bursts behind the cycle `bus`
    }
}
