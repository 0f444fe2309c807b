// The root PE's UART: boards/pe-mesh.md, section 5. Its wire takes no time here, and so no byte is ever lost.
using System;
using System.Collections.Generic;
using Antmicro.Migrant;
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.UART;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class Uart : IUART, IDoubleWordPeripheral, IKnownSize
    {
        public Uart(CortexM cpu, uint baud)
        {
            this.cpu = cpu;
            BaudRate = baud;
        }

        [field: Transient]
        public event Action<byte> CharReceived;

        public void Reset()
        {
            lock(received)
            {
                received.Clear();
            }
        }

        // A byte from the host, from whatever thread.
        public void WriteChar(byte value)
        {
            lock(received)
            {
                received.Enqueue(value);
            }
            cpu.SetEventFlag(true);
        }

        public uint ReadDoubleWord(long offset)
        {
            lock(received)
            {
                switch(offset)
                {
                case Data:
                    return received.Count > 0 ? received.Dequeue() : (uint)0;
                case Status:
                    return received.Count > 0 ? Readable | Writable : Writable;
                default:
                    return 0;
                }
            }
        }

        public void WriteDoubleWord(long offset, uint value)
        {
            if(offset == Data)
            {
                CharReceived?.Invoke((byte)value);
            }
        }

        public uint BaudRate { get; private set; }

        public Bits StopBits { get { return Bits.One; } }

        public Parity ParityBit { get { return Parity.None; } }

        public long Size { get { return 0x1000; } }

        private readonly Queue<byte> received = new Queue<byte>();
        private readonly CortexM cpu;

        private const long Data = 0x00, Status = 0x04;
        private const uint Readable = 1, Writable = 2;
    }
}
