// The root PE's UART: boards/pe-mesh.md, section 5. A byte takes its time on the wire, in both directions.
using System;
using System.Collections.Generic;
using Antmicro.Migrant;
using Antmicro.Renode.Core;
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.UART;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class Uart : IUART, IDoubleWordPeripheral, IKnownSize
    {
        public Uart(IMachine machine, CortexM cpu, uint baud)
        {
            this.machine = machine;
            this.cpu = cpu;
            BaudRate = baud;
        }

        [field: Transient]
        public event Action<byte> CharReceived;

        public void Reset()
        {
            lock(incoming)
            {
                incoming.Clear();
                received.Clear();
                sending.Clear();
                lost = false;
            }
        }

        // A byte from the host, from whatever thread: it queues for the wire.
        public void WriteChar(byte value)
        {
            bool idle;
            lock(incoming)
            {
                incoming.Enqueue(value);
                idle = !arriving;
                arriving = true;
            }
            if(idle)
            {
                machine.ScheduleAction(ByteTime, _ => Arrive());
            }
        }

        public uint ReadDoubleWord(long offset)
        {
            lock(incoming)
            {
                return offset == Data ? Take() : offset == Status ? TakeStatus() : 0;
            }
        }

        public void WriteDoubleWord(long offset, uint value)
        {
            if(offset != Data || sending.Count == SendBytes)
            {
                return;
            }
            sending.Enqueue((byte)value);
            if(!onLine)
            {
                onLine = true;
                machine.ScheduleAction(ByteTime, _ => Leave());
            }
        }

        public uint BaudRate { get; private set; }

        public Bits StopBits { get { return Bits.One; } }

        public Parity ParityBit { get { return Parity.None; } }

        public long Size { get { return 0x1000; } }

        private void Arrive()
        {
            lock(incoming)
            {
                if(incoming.Count > 0 && received.Count < ReceiveBytes)
                {
                    received.Enqueue(incoming.Dequeue());
                }
                else if(incoming.Count > 0)
                {
                    incoming.Dequeue();
                    lost = true;
                }
                arriving = incoming.Count > 0;
            }
            cpu.SetEventFlag(true);
            if(arriving)
            {
                machine.ScheduleAction(ByteTime, _ => Arrive());
            }
        }

        private void Leave()
        {
            if(sending.Count > 0)
            {
                var value = sending.Dequeue();
                CharReceived?.Invoke(value);
            }
            onLine = sending.Count > 0;
            if(onLine)
            {
                machine.ScheduleAction(ByteTime, _ => Leave());
            }
        }

        private uint Take()
        {
            return received.Count > 0 ? received.Dequeue() : (uint)0;
        }

        private uint TakeStatus()
        {
            var status = (received.Count > 0 ? 1u : 0u) | (sending.Count < SendBytes ? 2u : 0u) | (lost ? 4u : 0u);
            lost = false;
            return status;
        }

        private TimeInterval ByteTime { get { return TimeInterval.FromMicroseconds((BitsPerByte * 1000000 + BaudRate - 1) / BaudRate); } }

        private bool arriving, onLine, lost;
        private readonly Queue<byte> incoming = new Queue<byte>(), received = new Queue<byte>(), sending = new Queue<byte>();
        private readonly IMachine machine;
        private readonly CortexM cpu;

        private const long Data = 0x00, Status = 0x04;
        private const int ReceiveBytes = 256, SendBytes = 16, BitsPerByte = 10;
    }
}
