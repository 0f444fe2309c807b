// Stubs of Renode, as far as the devices use it, with a clock of cycles: tests of the devices where Renode is absent.
using System;
using System.Collections.Generic;
using System.Linq;
using Antmicro.Renode.Core;
using Antmicro.Renode.Core.Structure.Registers;
using Antmicro.Renode.Peripherals;
using Antmicro.Renode.Peripherals.Bus;
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

        public ulong ToCPUCycles(uint million, out ulong rest)
        {
            rest = 0;
            return Ticks;
        }

        public ulong Ticks;
    }

    public class TimeHandle
    {
        public TimeInterval TotalElapsedTime;
    }
}

namespace Antmicro.Renode.Peripherals
{
    public interface IPeripheral
    {
        void Reset();
    }
}

namespace Antmicro.Renode.Peripherals
{
    public abstract class BasicDoubleWordPeripheral : IDoubleWordPeripheral
    {
        protected BasicDoubleWordPeripheral(IMachine machine)
        {
            this.machine = machine;
        }

        public virtual void Reset()
        {
        }

        public uint ReadDoubleWord(long offset)
        {
            DoubleWordRegister register;
            return Defined.TryGetValue(offset, out register) ? register.Read() : 0;
        }

        public void WriteDoubleWord(long offset, uint value)
        {
            DoubleWordRegister register;
            if(Defined.TryGetValue(offset, out register))
            {
                register.Write(value);
            }
        }

        public readonly Dictionary<long, DoubleWordRegister> Defined = new Dictionary<long, DoubleWordRegister>();

        protected readonly IMachine machine;
        protected readonly SystemBus sysbus = new SystemBus();
    }

    public static class BasicDoubleWordPeripheralExtensions
    {
        public static DoubleWordRegister Define(this Enum offset, BasicDoubleWordPeripheral peripheral)
        {
            return peripheral.Defined[Convert.ToInt64(offset)] = new DoubleWordRegister();
        }

        public static void DefineMany(this Enum first, BasicDoubleWordPeripheral peripheral, uint count, Action<DoubleWordRegister, int> setup)
        {
            for(var i = 0; i < count; i++)
            {
                setup(peripheral.Defined[Convert.ToInt64(first) + 4 * i] = new DoubleWordRegister(), i);
            }
        }
    }
}

namespace Antmicro.Renode.Core.Structure.Registers
{
    [Flags]
    public enum FieldMode
    {
        Read = 1,
        Write = 2
    }

    public class DoubleWordRegister
    {
        public DoubleWordRegister WithValueField(int position, int width, FieldMode mode = FieldMode.Read | FieldMode.Write,
                                                 Action<ulong, ulong> writeCallback = null, Func<ulong, ulong> valueProviderCallback = null, string name = null)
        {
            if((mode & FieldMode.Read) != 0)
            {
                providers.Add(() => valueProviderCallback(0) << position);
            }
            if((mode & FieldMode.Write) != 0 && writeCallback != null)
            {
                writers.Add(value => writeCallback(0, value >> position & (1UL << width) - 1));
            }
            return this;
        }

        public DoubleWordRegister WithFlag(int position, FieldMode mode, Func<bool, bool> valueProviderCallback, string name = null)
        {
            return WithValueField(position, 1, mode, valueProviderCallback: _ => valueProviderCallback(false) ? 1UL : 0);
        }

        public uint Read()
        {
            return (uint)providers.Aggregate(0UL, (value, provider) => value | provider());
        }

        public void Write(uint value)
        {
            writers.ForEach(writer => writer(value));
        }

        private readonly List<Func<ulong>> providers = new List<Func<ulong>>();
        private readonly List<Action<ulong>> writers = new List<Action<ulong>>();
    }
}

namespace Antmicro.Renode.Utilities
{
    public class ReadFilePath
    {
        public static implicit operator string(ReadFilePath path)
        {
            return path.ToString();
        }
    }
}

namespace Antmicro.Renode.Peripherals.Bus
{
    public class SystemBus
    {
        // The core of the current access.
        public bool TryGetCurrentCPU(out CPU.CortexM cpu)
        {
            cpu = null;
            return false;
        }
    }

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

        public void SyncTime()
        {
        }

        public uint PerformanceInMips { get { return 1; } }

        public TimeHandle TimeHandle { get { return new TimeHandle { TotalElapsedTime = Time.TimeInterval.FromTicks(machine.Now) }; } }

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
        Debug,
        Error
    }

    public static class Logger
    {
        public static void Log(this IPeripheral peripheral, LogLevel level, string message, params object[] arguments)
        {
        }
    }
}
