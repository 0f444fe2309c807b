// As much of Renode as the devices use, with a clock of cycles: so they can be tested where Renode is absent.
using System;
using System.Collections.Generic;
using System.Linq;
using Antmicro.Renode.Peripherals;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Core
{
    public interface IMachine
    {
        void ScheduleAction(TimeInterval delay, Action<TimeInterval> action, string name = null);

        void RequestReset();
    }

    public class Machine : IMachine
    {
        public void ScheduleAction(TimeInterval delay, Action<TimeInterval> action, string name = null)
        {
            actions.Add(Tuple.Create(Now + delay.Ticks, number++, action));
        }

        public void RequestReset()
        {
            Resetable?.Reset();
        }

        public void Run()
        {
            while(actions.Count > 0)
            {
                var next = actions.OrderBy(each => each.Item1).ThenBy(each => each.Item2).First();
                actions.Remove(next);
                Now = next.Item1;
                next.Item3(TimeInterval.FromTicks(Now));
            }
        }

        public ulong Now;
        public IPeripheral Resetable;

        private int number;
        private readonly List<Tuple<ulong, int, Action<TimeInterval>>> actions = new List<Tuple<ulong, int, Action<TimeInterval>>>();
    }
}

namespace Antmicro.Renode.Time
{
    public struct TimeInterval
    {
        public static TimeInterval FromTicks(ulong ticks)
        {
            return new TimeInterval { Ticks = ticks };
        }

        public static TimeInterval FromCPUCycles(ulong cycles, uint million, out ulong rest)
        {
            rest = 0;
            return FromTicks(cycles);
        }

        public ulong Ticks;
    }
}

namespace Antmicro.Renode.Peripherals
{
    public interface IPeripheral
    {
        void Reset();
    }
}

namespace Antmicro.Renode.Peripherals.Bus
{
    public interface IDoubleWordPeripheral : IPeripheral
    {
        uint ReadDoubleWord(long offset);

        void WriteDoubleWord(long offset, uint value);
    }

    public interface IKnownSize
    {
        long Size { get; }
    }
}

namespace Antmicro.Renode.Peripherals.CPU
{
    public class CortexM
    {
        public CortexM(Core.Machine machine)
        {
            this.machine = machine;
        }

        public void SetEventFlag(bool value)
        {
            Events.Add(machine.Now);
        }

        public uint PerformanceInMips { get { return 1; } }

        public readonly List<ulong> Events = new List<ulong>();

        private readonly Core.Machine machine;
    }
}

namespace Antmicro.Renode.Peripherals.Memory
{
    public class MappedMemory
    {
        public MappedMemory(int size)
        {
            bytes = new byte[size];
        }

        public byte[] ReadBytes(long offset, int count)
        {
            return bytes.Skip((int)offset).Take(count).ToArray();
        }

        public void WriteBytes(long offset, byte[] value)
        {
            Array.Copy(value, 0, bytes, offset, value.Length);
        }

        public long Size { get { return bytes.Length; } }

        private readonly byte[] bytes;
    }
}

namespace Antmicro.Renode.Logging
{
    public enum LogLevel
    {
        Error
    }

    public static class Logger
    {
        public static void Log(this IPeripheral peripheral, LogLevel level, string message, params object[] arguments)
        {
        }
    }
}
