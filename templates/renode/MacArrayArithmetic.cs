// SPDX-License-Identifier: Apache-2.0
// The MAC array's arithmetic: boards/pe-mesh.md, sections 3.3 and 3.4.
using System;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class MacArrayArithmetic
    {
        public MacArrayArithmetic(MacArrayCommand command, MacArrayFigures figures, byte[] memory)
        {
            this.command = command;
            this.memory = memory;
            this.figures = figures;
            block = command.Block(figures);
            rows = (long)command.WeightRows;
            parameterBytes = figures.ParameterBytesPerChannel;
            unusedBits = 32 - (int)figures.AccumulatorBits;
        }

        // Store each pixel of the output. All pixels are computed from the initial memory.
        public void Execute(Action<long, byte[]> store)
        {
            for(var y = 0; y < command.OutputHeight; y++)
            {
                for(var x = 0; x < command.OutputWidth; x++)
                {
                    store(command.Output.At(y, x), Pixel(y, x));
                }
            }
        }

        private byte[] Pixel(int y, int x)
        {
            var window = command.Kind == MacArrayCommand.Add ? null : Window(y, x);
            var values = new byte[command.OutputChannels * command.ResultBytes];
            for(var c = 0; c < command.OutputChannels; c++)
            {
                var value = Element(window, y, x, c);
                if(command.ResultBytes == 4)
                {
                    BitConverter.GetBytes(value).CopyTo(values, 4 * c);
                }
                else
                {
                    values[c] = (byte)value;
                }
            }
            return values;
        }

        private int Element(long[] window, int y, int x, int c)
        {
            switch(command.Kind)
            {
            case MacArrayCommand.Convolution:
            case MacArrayCommand.Depthwise:
                return Product(window, y, x, c);
            case MacArrayCommand.Add:
                var sum = Addition(command.Parameters, Byte(command.Source.At(y, x) + c), Byte(command.Second.At(y, x) + c), command.Multiplies);
                return Clamp((long)sum + command.OutputZero, command.ClampMin, command.ClampMax);
            case MacArrayCommand.MaximumPool:
                return Clamp(Maximum(window, c), command.ClampMin, command.ClampMax);
            default:
                return Clamp(Average(window, c), command.ClampMin, command.ClampMax);
            }
        }

        // Addresses of the input pixels under the kernel, tap by tap; Outside for padding.
        private long[] Window(int y, int x)
        {
            var window = new long[command.Taps];
            for(var tap = 0; tap < window.Length; tap++)
            {
                var row = y * command.StrideY + tap / command.KernelWidth * command.DilationY - command.PadTop;
                var column = x * command.StrideX + tap % command.KernelWidth * command.DilationX - command.PadLeft;
                var inside = row >= 0 && row < command.InputHeight && column >= 0 && column < command.InputWidth;
                window[tap] = inside ? command.Source.At(row, column) : Outside;
            }
            return window;
        }

        private int Product(long[] window, int y, int x, int c)
        {
            var parameters = command.Parameters + c / block * block * parameterBytes;
            var lane = c % block;
            var accumulate = (command.Flags & MacArrayCommand.Accumulate) != 0;
            var start = accumulate ? Word(command.Extra.At(y, x) + 4 * c) : Word(parameters + 4 * lane);
            // Shifting left and right wraps the sum to the accumulators' two's complement.
            var sum = unchecked((start + Sum(window, c)) << unusedBits >> unusedBits);
            if((command.Flags & MacArrayCommand.Raw) != 0)
            {
                return sum;
            }
            var scaled = Requantize(sum, Word(parameters + 4 * (block + lane)), Byte(parameters + 8 * block + lane));
            var value = Clamp((long)scaled + command.OutputZero, command.ClampMin, command.ClampMax);
            if((command.Flags & MacArrayCommand.Residual) == 0)
            {
                return value;
            }
            var added = (long)Addition(command.ResidualParameters, value, Byte(command.Extra.At(y, x) + c), false) + command.ResidualZero;
            return Clamp(added, command.ResidualMin, command.ResidualMax);
        }

        private int Sum(long[] window, int c)
        {
            long first = command.Weights, place = c / block * block * rows + c % block;
            long apart = command.Columns(figures, (uint)(command.OutputChannels - c / block * block));
            int zero = 0, secondZero = 0;
            if(command.HasSecond)
            {
                first = command.AlongPixels ? command.Second.At(c, 0) : command.Weights + c;
                place = 0;
                apart = command.AlongPixels ? 1 : command.Second.At(1, 0) - command.Second.At(0, 0);
                zero = command.InputZero;
                secondZero = command.SecondZero;
            }
            var depthwise = command.Kind == MacArrayCommand.Depthwise;
            var channels = depthwise ? 1 : (int)command.InputChannels;
            var sum = 0;
            foreach(var pixel in window)
            {
                for(var i = 0; i < channels; i++, place += apart)
                {
                    var value = pixel == Outside ? command.InputZero : (sbyte)memory[pixel + (depthwise ? c : i)];
                    sum = unchecked(sum + (value - zero) * (Weight(first, place) - secondZero));
                }
            }
            return sum;
        }

        // The weight at a place behind the first.
        private int Weight(long first, long place)
        {
            if(!command.HasNibbles)
            {
                return (sbyte)memory[first + place];
            }
            var pair = memory[first + place / 2];
            return (sbyte)(place % 2 == 0 ? pair << 4 : pair) >> 4;
        }

        private int Maximum(long[] window, int c)
        {
            var greatest = (int)sbyte.MinValue;
            foreach(var pixel in window)
            {
                greatest = pixel == Outside ? greatest : Math.Max(greatest, Byte(pixel + c));
            }
            return greatest;
        }

        // Rounds half away from zero.
        private int Average(long[] window, int c)
        {
            int sum = 0, count = 0;
            foreach(var pixel in window)
            {
                sum += pixel == Outside ? 0 : Byte(pixel + c);
                count += pixel == Outside ? 0 : 1;
            }
            return count == 0 ? 0 : (sum + (sum < 0 ? -(count / 2) : count / 2)) / count;
        }

        private int Addition(long constants, int a, int b, bool product)
        {
            Func<int, int> constant = n => Word(constants + 4 * n);
            var first = Requantize(unchecked((a - constant(0)) << AdditionShift), constant(1), constant(2));
            var second = Requantize(unchecked((b - constant(3)) << AdditionShift), product ? first : constant(4), constant(5));
            return Requantize(product ? second : unchecked(first + second), constant(6), constant(7));
        }

        // Rounds twice, as TFLite does.
        private static int Requantize(int value, int multiplier, int shift)
        {
            var bounded = Math.Max(-LargestShift, Math.Min(shift, LargestShift));
            var shifted = unchecked(value << Math.Max(bounded, 0));
            return RoundingDivide(DoublingHighMultiply(shifted, multiplier), Math.Max(-bounded, 0));
        }

        private static int DoublingHighMultiply(int a, int b)
        {
            if(a == int.MinValue && b == int.MinValue)
            {
                return int.MaxValue;
            }
            var product = (long)a * b;
            var nudge = product >= 0 ? 1L << 30 : 1 - (1L << 30);
            return (int)((product + nudge) / (1L << 31)); // C# divides towards zero
        }

        private static int RoundingDivide(int value, int exponent)
        {
            var mask = (1L << exponent) - 1;
            var threshold = (mask >> 1) + (value < 0 ? 1 : 0);
            return (int)(((long)value >> exponent) + ((value & mask) > threshold ? 1 : 0));
        }

        private static int Clamp(long value, int low, int high)
        {
            return (int)Math.Min(Math.Max(value, low), high);
        }

        private int Byte(long address)
        {
            return (sbyte)memory[address];
        }

        private int Word(long address)
        {
            return BitConverter.ToInt32(memory, (int)address);
        }

        private readonly MacArrayCommand command;
        private readonly byte[] memory;
        private readonly MacArrayFigures figures;
        private readonly long block, rows, parameterBytes;
        private readonly int unusedBits;

        private const long Outside = -1;
        private const int AdditionShift = 20, LargestShift = 31;
    }
}
