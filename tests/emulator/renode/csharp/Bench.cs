// Mesh of devices, controlled by another process over stdin and stdout: reads and writes of registers and memory, and
// the passing of time. Arguments: the figures of Mesh, then PEs, SRAM bytes, flags, then the figures of MacArray, dead
// links, then the bytes and figures of the flash. The flash's memory is addressed as the PE behind the last.
using System;
using System.IO;
using System.Linq;
using Antmicro.Renode.Core;
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.Memory;
using Antmicro.Renode.Peripherals.PeMesh;

public static class Bench
{
    public static void Main(string[] arguments)
    {
        var n = arguments.Take(34).Select(uint.Parse).ToArray();
        var machine = new Machine();
        var mesh = new Mesh(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15], n[16],
                            n[17], n[18], n[19], arguments[34]);
        var f = arguments.Skip(35).Select(uint.Parse).ToArray();
        var memories = Enumerable.Range(0, (int)n[20]).Select(_ => new MappedMemory((int)n[21])).ToArray();
        var cores = memories.Select(_ => new CortexM(machine)).ToArray();
        var nocs = memories.Select((memory, pe) => new Noc(machine, cores[pe], memory, mesh, (uint)pe, n[22])).ToArray();
        var arrays = memories.Select(
            (memory, pe) => new MacArray(machine, cores[pe], memory, n[23], n[24], n[25], n[26], n[27], n[28], n[29], n[30], n[31],
                                        n[32], n[33])).ToArray();
        var flashMemory = new MappedMemory((int)f[0]);
        var flash = new Flash(machine, cores[0], flashMemory, f[1], f[2], f[3], f[4], f[5]);
        memories = memories.Concat(new[] { flashMemory }).ToArray();
        machine.Resetable = flash;
        var input = new BinaryReader(Console.OpenStandardInput());
        var output = new BinaryWriter(Console.OpenStandardOutput());
        for(var request = input.ReadChar(); request != 'Q'; request = input.ReadChar())
        {
            var pe = input.ReadInt32();
            var device = request == 'a' || request == 'A' ? arrays[pe] : request == 'f' || request == 'F' ? flash : (IDoubleWordPeripheral)nocs[pe % nocs.Length];
            switch(request)
            {
            case 'a':
            case 'f':
            case 'n':
                output.Write(device.ReadDoubleWord(input.ReadInt32()));
                break;
            case 'A':
            case 'F':
            case 'N':
                device.WriteDoubleWord(input.ReadInt32(), input.ReadUInt32());
                break;
            case 'm':
                output.Write(memories[pe].ReadBytes(input.ReadInt32(), input.ReadInt32()));
                break;
            case 'M':
                memories[pe].WriteBytes(input.ReadInt32(), input.ReadBytes(input.ReadInt32()));
                break;
            case 'e':
                output.Write(cores[pe].Events.Count);
                cores[pe].Events.ForEach(output.Write);
                cores[pe].Events.Clear();
                break;
            case 'T':
                machine.Run();
                machine.Now = 0;
                break;
            }
            output.Flush();
        }
    }
}
