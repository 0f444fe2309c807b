// SPDX-License-Identifier: Apache-2.0
// The root PE's UART: boards/pe-mesh.md, section 5. Transfers take no time here, so no byte is ever lost.
using System;
using System.Collections.Generic;
using Antmicro.Migrant;
using Antmicro.Renode.Core;
using Antmicro.Renode.Core.Structure.Registers;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.UART;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class Uart : Device, IUART
    {
        public Uart(IMachine machine, CortexM cpu, uint baud) : base(machine, cpu)
        {
            BaudRate = baud;
            Registers.Data.Define(this)
                .WithValueField(0, 8, name: "DATA", valueProviderCallback: _ => NextByte(), writeCallback: (_, value) => CharReceived?.Invoke((byte)value));
            Registers.Status.Define(this)
                .WithFlag(0, FieldMode.Read, name: "READABLE", valueProviderCallback: _ => Waiting > 0)
                .WithFlag(1, FieldMode.Read, name: "WRITABLE", valueProviderCallback: _ => true);
        }

        [field: Transient]
        public event Action<byte> CharReceived;

        public override void Reset()
        {
            base.Reset();
            lock(received)
            {
                received.Clear();
            }
        }

        // Receive a byte from the host, on any thread.
        public void WriteChar(byte value)
        {
            lock(received)
            {
                received.Enqueue(value);
            }
            cpu.SetEventFlag(true);
        }

        // Bytes received but not read yet.
        public int Waiting
        {
            get
            {
                lock(received)
                {
                    return received.Count;
                }
            }
        }

        public uint BaudRate { get; private set; }

        public Bits StopBits { get { return Bits.One; } }

        public Parity ParityBit { get { return Parity.None; } }

        private byte NextByte()
        {
            lock(received)
            {
                return received.Count > 0 ? received.Dequeue() : (byte)0;
            }
        }

        private readonly Queue<byte> received = new Queue<byte>();

        private enum Registers : long
        {
            Data = 0x00,
            Status = 0x04,
        }
    }
}
