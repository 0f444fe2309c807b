// SPDX-License-Identifier: Apache-2.0
// The cycles of a message alone on the board: boards/pe-mesh.md, sections 4.4 to 4.7, without refresh.
// npukit's own emulator models several messages at once.
using System;
using System.Collections.Generic;
using System.Linq;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    // The last byte of a message is in place.
    public struct NocArrival
    {
        public int Group;
        public uint Place;
        public ulong Cycle;
    }

    // The cycles of a message, from the grant of its fetch on.
    public class MessageTimes
    {
        // `check`: the error of a group of destinations, or 0.
        public MessageTimes(Mesh mesh, uint pe, NocDescriptor descriptor, NocPlace[][] groups, Func<int, uint> check)
        {
            this.mesh = mesh;
            this.descriptor = descriptor;
            this.groups = groups;
            this.check = check;
            own = DmaOf(pe);
            own.Fetches = true;
            while(clock.Now != NocClock.Never)
            {
                Step();
            }
        }

        // When the source has been read, the descriptor is done, and the next one may be fetched.
        public ulong Read { get; private set; } = NocClock.Never;

        public ulong Done { get; private set; } = NocClock.Never;

        public ulong Idle { get; private set; }

        // The error of a group, and its cycle.
        public uint Error { get; private set; }

        public ulong ErrorCycle { get; private set; }

        public readonly List<NocArrival> Arrivals = new List<NocArrival>();

        // All grants of a cycle. Then go to the next cycle in which there may be another.
        private void Step()
        {
            clock.Next = NocClock.Never;
            granted = false;
            routers.Values.ToList().ForEach(Grant);
            dmas.Values.ToList().ForEach(Grant);
            drams.Values.ToList().ForEach(Grant);
            borders.Values.ToList().ForEach(Grant);
            clock.Now = granted ? clock.Now + 1 : clock.Next;
        }

        // --- routers

        private void Grant(NocRouter router)
        {
            for(var input = 0; input < Mesh.Ports; input++)
            {
                for(var kind = Packet.Kinds - 1; kind >= 0 && clock.Due(router.InputFree[input]); kind--)
                {
                    Leave(router, input, kind);
                }
            }
        }

        // Send the first packet of an input and class to all free outputs.
        private void Leave(NocRouter router, int input, int kind)
        {
            var buffer = router.Inputs[input, kind];
            var packet = buffer?.First();
            if(packet == null)
            {
                return;
            }
            foreach(var places in packet.Places.GroupBy(place => mesh.Output(router.Pe, place)).ToArray())
            {
                if(clock.Due(router.OutputFree[places.Key]) && HasRoom(router.Pe, places.Key, kind))
                {
                    granted = true;
                    router.InputFree[input] = router.OutputFree[places.Key] = clock.Now + packet.Flits;
                    Send(router.Pe, places.Key, packet.Branch(places));
                }
            }
            if(packet.Places.Count == 0)
            {
                buffer.Remove(clock.Now + packet.Flits + CyclesToSender(router.Pe, input));
            }
        }

        private ulong CyclesToSender(uint pe, int input)
        {
            if(input == Mesh.PePort || input == Mesh.DramPort)
            {
                return InnerHopCycles - 1;
            }
            return mesh.LeavesChip(pe, input) ? mesh.ChipHopCycles : mesh.HopCycles - 1;
        }

        private bool HasRoom(uint pe, int output, int kind)
        {
            if(output == Mesh.PePort)
            {
                return Takes(DmaOf(pe), kind);
            }
            if(output == Mesh.DramPort)
            {
                return ControllerAt(pe).Buffers[kind].HasRoom();
            }
            return (mesh.LeavesChip(pe, output) ? BorderOf(pe, output).At(pe)[kind] : Input(mesh.Neighbour(pe, output), Mesh.Opposite(output), kind)).HasRoom();
        }

        private void Send(uint pe, int output, Packet packet)
        {
            var whole = clock.Now + packet.Flits + 1;
            if(output == Mesh.PePort)
            {
                Receive(DmaOf(pe), packet);
            }
            else if(output == Mesh.DramPort)
            {
                ControllerAt(pe).Buffers[packet.Kind].Add(packet, whole);
            }
            else if(mesh.LeavesChip(pe, output))
            {
                BorderOf(pe, output).At(pe)[packet.Kind].Add(packet, whole);
            }
            else
            {
                Input(mesh.Neighbour(pe, output), Mesh.Opposite(output), packet.Kind).Add(packet, clock.Now + mesh.HopCycles + packet.ListFlits);
            }
        }

        // Put a packet of the DMA or DRAM at a router into its input.
        private void Put(uint pe, int port, Packet packet, ulong from)
        {
            Input(pe, port, packet.Kind).Add(packet, from + InnerHopCycles + packet.ListFlits);
        }

        private PacketBuffer Input(uint pe, int port, int kind)
        {
            var inputs = RouterOf(pe).Inputs;
            if(inputs[port, kind] == null)
            {
                var room = kind != Packet.Data ? 1 : mesh.LeavesChip(pe, port) ? mesh.BorderPackets : mesh.BufferPackets;
                inputs[port, kind] = new PacketBuffer(clock, room);
            }
            return inputs[port, kind];
        }

        // --- DMA

        private void Grant(NocDma dma)
        {
            if(!clock.Due(dma.PortFree))
            {
                return;
            }
            if(dma.Fetches && clock.Due(dma.From))
            {
                Fetch();
            }
            else if(dma.Packets.Count > 0 && clock.Due(dma.From) && Input(dma.Pe, Mesh.PePort, dma.Packets.Peek().Kind).HasRoom())
            {
                Send(dma);
            }
        }

        private bool Takes(NocDma dma, int kind)
        {
            return kind == Packet.Acknowledgement || (kind == Packet.Data ? clock.Due(dma.PortFree) : dma.Packets.Count == 0 && clock.Due(dma.From));
        }

        // Read the descriptor and a group of its destinations.
        private void Fetch()
        {
            var list = descriptor.Multicast ? (uint)(groups[group].Length + 3) / 4 : 0;
            granted = true;
            own.Fetches = false;
            own.PortFree = clock.Now + FetchCycles + list;
            own.From = clock.Now + mesh.SetupCycles + list;
            Error = check(group);
            if(Error != 0)
            {
                ErrorCycle = own.From;
            }
            else if(descriptor.SourcePe == own.Pe)
            {
                Cut(group, own.Packets);
            }
            else
            {
                own.Packets.Enqueue(new Packet(Packet.Request, 2 + list, 0, descriptor.SourcePe) { Group = group, Last = true });
            }
        }

        private void Cut(int number, Queue<Packet> packets)
        {
            var list = descriptor.Multicast ? (uint)(groups[number].Length + 3) / 4 : 0;
            foreach(var packet in Packet.Cut(descriptor, mesh, list, groups[number].Select(to => to.Pe).Distinct().ToArray()))
            {
                packet.Group = number;
                packets.Enqueue(packet);
            }
        }

        private void Send(NocDma dma)
        {
            var packet = dma.Packets.Dequeue();
            granted = true;
            dma.PortFree = clock.Now + packet.Flits - 1;
            dma.From = clock.Now + packet.Flits;
            Put(dma.Pe, Mesh.PePort, packet, clock.Now);
            if(packet.Last && packet.Kind == Packet.Data && (dma != own || packet.Group + 1 == groups.Length))
            {
                Read = Math.Min(Read, dma.From);
            }
            if(packet.Last && dma == own)
            {
                EndGroup();
            }
        }

        private void EndGroup()
        {
            group++;
            own.Fetches = group < groups.Length;
            if(!own.Fetches && !Mesh.IsDram(groups[0][0].Pe))
            {
                Done = own.From;
            }
        }

        private void Receive(NocDma dma, Packet packet)
        {
            if(packet.Kind == Packet.Request)
            {
                dma.From = clock.Now + packet.Flits + 1;
                Cut(packet.Group, dma.Packets);
            }
            else if(packet.Kind == Packet.Acknowledgement)
            {
                Done = clock.Now + 2;
            }
            else
            {
                dma.PortFree = clock.Now + packet.Flits;
                Idle = dma == own && Done != NocClock.Never && clock.Now <= Done ? dma.PortFree : Idle;
                Arrive(packet, dma.Pe, dma.PortFree + 1);
            }
        }

        private void Arrive(Packet packet, uint place, ulong cycle)
        {
            if(packet.Last)
            {
                Arrivals.Add(new NocArrival { Group = packet.Group, Place = place, Cycle = cycle });
            }
        }

        // --- DRAM

        private void Grant(DramController dram)
        {
            var request = dram.Buffers[Packet.Request].First();
            if(request != null && dram.Packets.Count == 0)
            {
                dram.Known = dram.Buffers[Packet.Request].Since + mesh.DramFigures.LatencyCycles;
                Cut(request.Group, dram.Packets);
            }
            var write = dram.Buffers[Packet.Data].First();
            var reads = dram.Packets.Count > 0 && clock.Due(dram.Known) && Input(dram.Pe, Mesh.DramPort, Packet.Data).HasRoom();
            if(!clock.Due(dram.Free) || (write == null && !reads))
            {
                return;
            }
            granted = true;
            dram.ReadLast = write == null || (reads && !dram.ReadLast);
            if(dram.ReadLast)
            {
                ReadPacket(dram);
            }
            else
            {
                WritePacket(dram, write);
            }
        }

        private void WritePacket(DramController dram, Packet packet)
        {
            dram.Times.Access(packet, groups[0][0].Address, descriptor.DestinationStride, clock.Now, dram.Buffers[Packet.Data].Since);
            dram.Free = dram.Times.End;
            dram.Buffers[Packet.Data].Remove(dram.Free);
            Arrive(packet, dram.Place, dram.Free);
            if(packet.Last)
            {
                Put(dram.Pe, Mesh.DramPort, new Packet(Packet.Acknowledgement, 1, 0, own.Pe), dram.Free);
            }
        }

        private void ReadPacket(DramController dram)
        {
            var packet = dram.Packets.Dequeue();
            dram.Times.Access(packet, descriptor.Source, descriptor.SourceStride, clock.Now, dram.Known);
            dram.Free = dram.Times.End;
            var cycles = dram.Free - dram.Times.Begin;
            Put(dram.Pe, Mesh.DramPort, packet, dram.Times.Begin + Math.Max(cycles, packet.Flits) - packet.Flits);
            if(packet.Last)
            {
                dram.Buffers[Packet.Request].Remove(dram.Free);
                Read = Math.Min(Read, dram.Free);
            }
        }

        // --- links between chips

        private void Grant(NocBorder border)
        {
            for(var link = 0; link < border.Free.Length; link++)
            {
                var pe = clock.Due(border.Free[link]) ? NextAt(border) : null;
                if(pe != null)
                {
                    Cross(border, pe.Value, link);
                }
            }
        }

        // The next router along a border with a packet ready to cross.
        private uint? NextAt(NocBorder border)
        {
            var ready = border.Buffers.Keys.Where(pe => KindAt(border, pe) >= 0).Select(pe => (uint?)pe).ToArray();
            return ready.FirstOrDefault(pe => border.Last == null || pe > border.Last) ?? ready.FirstOrDefault();
        }

        // The highest class of the packets ready to cross at a router, or -1.
        private int KindAt(NocBorder border, uint pe)
        {
            var kind = Packet.Kinds - 1;
            while(kind >= 0 && (border.Buffers[pe][kind].First() == null || !Beyond(border, pe, kind).HasRoom()))
            {
                kind--;
            }
            return kind;
        }

        private PacketBuffer Beyond(NocBorder border, uint pe, int kind)
        {
            return Input(mesh.Neighbour(pe, border.Port), Mesh.Opposite(border.Port), kind);
        }

        private void Cross(NocBorder border, uint pe, int link)
        {
            var kind = KindAt(border, pe);
            var packet = border.Buffers[pe][kind].First();
            var end = clock.Now + mesh.BorderCycles(packet.Flits);
            granted = true;
            border.Last = pe;
            border.Free[link] = end;
            border.Buffers[pe][kind].Remove(end + 1);
            Beyond(border, pe, kind).Add(packet, end + mesh.ChipHopCycles);
        }

        // --- parts of the network, made at first use

        private NocRouter RouterOf(uint pe)
        {
            return Part(routers, pe, () => new NocRouter { Pe = pe });
        }

        private NocDma DmaOf(uint pe)
        {
            return Part(dmas, pe, () => new NocDma { Pe = pe });
        }

        private DramController ControllerAt(uint pe)
        {
            var place = Mesh.DramOfChip + mesh.ChipOf(pe);
            return Part(drams, place, () => new DramController(clock, mesh, pe, place));
        }

        private NocBorder BorderOf(uint pe, int port)
        {
            return Part(borders, mesh.ChipOf(pe) * Mesh.Ports + (uint)port, () => new NocBorder(clock, mesh, port));
        }

        private static T Part<T>(SortedDictionary<uint, T> parts, uint number, Func<T> make)
        {
            T part;
            if(!parts.TryGetValue(number, out part))
            {
                parts.Add(number, part = make());
            }
            return part;
        }

        private int group;
        private bool granted; // in this cycle
        private readonly Mesh mesh;
        private readonly NocDescriptor descriptor;
        private readonly NocPlace[][] groups;
        private readonly Func<int, uint> check;
        private readonly NocDma own;
        private readonly NocClock clock = new NocClock();
        private readonly SortedDictionary<uint, NocRouter> routers = new SortedDictionary<uint, NocRouter>();
        private readonly SortedDictionary<uint, NocDma> dmas = new SortedDictionary<uint, NocDma>();
        private readonly SortedDictionary<uint, DramController> drams = new SortedDictionary<uint, DramController>();
        private readonly SortedDictionary<uint, NocBorder> borders = new SortedDictionary<uint, NocBorder>();

        private const uint InnerHopCycles = 2, FetchCycles = 2;
    }

    public class NocRouter
    {
        public uint Pe;
        public readonly PacketBuffer[,] Inputs = new PacketBuffer[Mesh.Ports, Packet.Kinds];
        public readonly ulong[] InputFree = new ulong[Mesh.Ports], OutputFree = new ulong[Mesh.Ports];
    }

    // The DMA of a PE at the SRAM's port, with packets to send.
    public class NocDma
    {
        public uint Pe;
        public bool Fetches;
        public ulong PortFree, From; // From: may send
        public readonly Queue<Packet> Packets = new Queue<Packet>();
    }

    // A DRAM's controller, with packets to read.
    public class DramController
    {
        public DramController(NocClock clock, Mesh mesh, uint pe, uint place)
        {
            Pe = pe;
            Place = place;
            Times = new DramTimes(mesh.Dram(place), mesh.DramFigures);
            Buffers = new[] { mesh.BufferPackets, 1u }.Select(room => new PacketBuffer(clock, room)).ToArray();
        }

        public ulong Free, Known;
        public bool ReadLast = true;
        public readonly uint Pe, Place;
        public readonly DramTimes Times;
        public readonly PacketBuffer[] Buffers;
        public readonly Queue<Packet> Packets = new Queue<Packet>();
    }

    // The links of a border in one direction, and the buffers of its routers.
    public class NocBorder
    {
        public NocBorder(NocClock clock, Mesh mesh, int port)
        {
            this.clock = clock;
            this.mesh = mesh;
            Port = port;
            Free = new ulong[mesh.ChipLinksPerBorder];
        }

        public PacketBuffer[] At(uint pe)
        {
            PacketBuffer[] buffers;
            if(!Buffers.TryGetValue(pe, out buffers))
            {
                Buffers[pe] = buffers = new[] { mesh.BufferPackets, 1u, 1u }.Select(room => new PacketBuffer(clock, room)).ToArray();
            }
            return buffers;
        }

        public uint? Last;
        public readonly int Port;
        public readonly ulong[] Free;
        public readonly SortedDictionary<uint, PacketBuffer[]> Buffers = new SortedDictionary<uint, PacketBuffer[]>();

        private readonly NocClock clock;
        private readonly Mesh mesh;
    }
}
