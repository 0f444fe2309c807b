// SPDX-License-Identifier: Apache-2.0
// The host link: a TCP port on the loopback interface. Renode's own socket terminal listens on all interfaces.
using System;
using System.Net;
using System.Net.Sockets;
using System.Threading;
using Antmicro.Migrant;
using Antmicro.Renode.Backends.Terminals;
using Antmicro.Renode.Core;
using Antmicro.Renode.Peripherals.UART;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public static class LinkTerminalExtensions
    {
        // With `leave` Renode exits when the host closes the connection, and so does not outlive the program behind it.
        public static void CreateLinkTerminal(this Emulation emulation, int port, string name, bool leave = false)
        {
            emulation.ExternalsManager.AddExternal(new LinkTerminal(port, leave), name);
        }
    }

    [Transient]
    public class LinkTerminal : BackendTerminal, IDisposable
    {
        public LinkTerminal(int port, bool leave)
        {
            this.leave = leave;
            listener = new TcpListener(IPAddress.Loopback, port);
        }

        // Listening starts here, so clients can connect.
        public override void AttachTo(IUART uart)
        {
            base.AttachTo(uart);
            listener.Start();
            new Thread(Serve) { IsBackground = true, Name = "Link terminal" }.Start();
        }

        public override void WriteChar(byte value)
        {
            try
            {
                host?.GetStream().WriteByte(value);
            }
            catch(Exception)
            {
                // The host has closed the connection; Serve handles this.
            }
        }

        public void Dispose()
        {
            closed = true;
            listener.Stop();
            host?.Close();
        }

        // Serve hosts in turn.
        private void Serve()
        {
            try
            {
                while(!closed)
                {
                    host = listener.AcceptTcpClient();
                    host.NoDelay = true;
                    Receive(host.GetStream());
                    host.Close();
                    host = null;
                    if(leave && !closed)
                    {
                        Environment.Exit(0);
                    }
                }
            }
            catch(SocketException)
            {
                // Dispose has stopped the listener.
            }
        }

        private void Receive(NetworkStream stream)
        {
            try
            {
                for(var value = stream.ReadByte(); value >= 0; value = stream.ReadByte())
                {
                    CallCharReceived((byte)value);
                }
            }
            catch(Exception)
            {
                // The host has closed the connection during a read.
            }
        }

        private volatile TcpClient host;
        private volatile bool closed;
        private readonly bool leave;
        private readonly TcpListener listener;
    }
}
