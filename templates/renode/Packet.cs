// SPDX-License-Identifier: Apache-2.0
// Packets of a message, and buffers of packets: boards/pe-mesh.md, sections 4.3 and 4.4.
using System;
using System.Collections.Generic;
using System.Linq;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    // A packet, for some of the message's places.
    public class Packet
    {
        // The packets of a message for some places, in order. `list`: flits of the list of destinations.
        public static IEnumerable<Packet> Cut(NocDescriptor descriptor, Mesh mesh, uint list, uint[] places)
        {
            int rows = descriptor.Rows, bytes = descriptor.RowBytes, flit = (int)mesh.FlitBytes, most = (int)(mesh.PacketFlits - 1 - list);
            if(rows == 0 || bytes == 0)
            {
                return new[] { new Packet(Data, 1 + list, list, places) { Last = true } };
            }
            int rowFlits = (bytes + flit - 1) / flit, together = Math.Max(1, most / rowFlits), piece = rowFlits <= most ? bytes : most * flit;
            var packets = new List<Packet>();
            for(var row = 0; row < rows; row += together)
            {
                for(var offset = 0; offset < bytes; offset += piece)
                {
                    int count = Math.Min(together, rows - row), part = Math.Min(piece, bytes - offset);
                    var flits = (uint)(count * ((part + flit - 1) / flit));
                    packets.Add(new Packet(Data, 1 + list + flits, list, places) { Row = row, Rows = count, Offset = offset, RowBytes = part });
                }
            }
            packets[packets.Count - 1].Last = true;
            return packets;
        }

        public Packet(int kind, uint flits, uint listFlits, params uint[] places)
        {
            Kind = kind;
            Flits = flits;
            ListFlits = listFlits;
            Places = new List<uint>(places);
        }

        // The part of the packet for some of its places.
        public Packet Branch(IEnumerable<uint> places)
        {
            var branch = (Packet)MemberwiseClone();
            branch.Places = places.ToList();
            Places.RemoveAll(branch.Places.Contains);
            return branch;
        }

        public readonly int Kind;
        public readonly uint Flits, ListFlits;

        public int Group, Row, Rows, Offset, RowBytes;
        public bool Last;
        public List<uint> Places;

        public const int Data = 0, Request = 1, Acknowledgement = 2, Kinds = 3;
    }

    // A message's clock: the running cycle, and the next cycle in which something may happen.
    public class NocClock
    {
        // True from a cycle on.
        public bool Due(ulong cycle)
        {
            if(cycle > Now)
            {
                Next = Math.Min(Next, cycle);
            }
            return cycle <= Now;
        }

        public ulong Now, Next;

        public const ulong Never = ulong.MaxValue;
    }

    // Packets at the end of a link, the oldest first. The place of a removed packet is free again from a cycle on.
    public class PacketBuffer
    {
        public PacketBuffer(NocClock clock, uint room)
        {
            this.clock = clock;
            free = new ulong[room];
        }

        public bool HasRoom()
        {
            foreach(var cycle in free)
            {
                if(cycle != NocClock.Never && clock.Due(cycle))
                {
                    return true;
                }
            }
            return false;
        }

        // `from`: the first cycle in which the packet may be granted.
        public void Add(Packet packet, ulong from)
        {
            free[Array.IndexOf(free, free.Min())] = NocClock.Never;
            packets.Enqueue(packet);
            since.Enqueue(from);
        }

        // The first packet, or null if none may be granted.
        public Packet First()
        {
            return packets.Count > 0 && clock.Due(since.Peek()) ? packets.Peek() : null;
        }

        public void Remove(ulong freeFrom)
        {
            free[Array.IndexOf(free, NocClock.Never)] = freeFrom;
            packets.Dequeue();
            since.Dequeue();
        }

        // When the first packet could be granted.
        public ulong Since { get { return since.Peek(); } }

        private readonly NocClock clock;
        private readonly ulong[] free;
        private readonly Queue<Packet> packets = new Queue<Packet>();
        private readonly Queue<ulong> since = new Queue<ulong>();
    }
}
