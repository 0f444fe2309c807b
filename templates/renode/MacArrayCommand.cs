// SPDX-License-Identifier: Apache-2.0
// The MAC array's commands: boards/pe-mesh.md, section 3.2.
using System;
using System.Collections.Generic;
using System.Linq;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    // A tensor in memory: height x width pixels of `pixelBytes` bytes. `elementwise`: a result depends only on the
    // element at its own position.
    public class MacArrayTensor
    {
        public MacArrayTensor(string name, uint start, uint height, uint width, int rowStride, int pixelStride, ulong pixelBytes, bool elementwise = false)
        {
            Name = name;
            this.start = start;
            this.height = height;
            this.width = width;
            this.rowStride = rowStride;
            PixelStride = pixelStride;
            this.pixelBytes = (long)pixelBytes;
            this.elementwise = elementwise;
        }

        public long At(long y, long x)
        {
            return start + y * rowStride + x * PixelStride;
        }

        public bool LiesIn(long size)
        {
            return From >= 0 && End <= size;
        }

        // Whether the output may overwrite bytes of this tensor before use.
        public bool IsInTheWayOf(MacArrayTensor output)
        {
            return From < output.End && output.From < End && !(elementwise && IsExactly(output));
        }

        // True if rows and pixels do not interleave, the usual case. Then no two elements overlap.
        public bool IsPlain
        {
            get
            {
                long pixel = Math.Abs((long)PixelStride), row = Math.Abs((long)rowStride);
                return (width == 1 || pixel >= pixelBytes) && (height == 1 || row >= (width - 1) * pixel + pixelBytes);
            }
        }

        // Whether the predicate is true for any byte of the tensor.
        public bool Any(Func<long, bool> isSo)
        {
            for(var y = 0L; y < height; y++)
            {
                for(var x = 0L; x < width; x++)
                {
                    for(long at = At(y, x), end = at + pixelBytes; at < end; at++)
                    {
                        if(isSo(at))
                        {
                            return true;
                        }
                    }
                }
            }
            return false;
        }

        public readonly string Name;
        public readonly int PixelStride;

        // Ignores the row stride of a single row and the pixel stride of a single column.
        private bool IsExactly(MacArrayTensor other)
        {
            return start == other.start && pixelBytes == other.pixelBytes && (height == 1 || rowStride == other.rowStride) &&
                   (width == 1 || PixelStride == other.PixelStride);
        }

        private long From { get { return start + Math.Min(LastRow, 0) + Math.Min(LastPixel, 0); } }

        private long End { get { return start + Math.Max(LastRow, 0) + Math.Max(LastPixel, 0) + pixelBytes; } }

        private long LastRow { get { return (long)(height - 1) * rowStride; } }

        private long LastPixel { get { return (long)(width - 1) * PixelStride; } }

        private readonly uint start, height, width;
        private readonly int rowStride;
        private readonly long pixelBytes;
        private readonly bool elementwise;
    }

    // A command: its fields and their check.
    public class MacArrayCommand
    {
        public MacArrayCommand(byte[] words)
        {
            Func<int, uint> word = n => BitConverter.ToUInt32(words, 4 * n);
            Func<int, int, byte> part = (n, i) => words[4 * n + i];
            Next = word(0);
            Kind = part(1, 0);
            Flags = part(1, 1) & Applicable(Kind, part(1, 1));
            Input = word(2);
            Weights = word(3);
            Parameters = word(4);
            OutputHeight = word(9) & 0xFFFF;
            OutputWidth = word(9) >> 16;
            InputHeight = Kind == Add ? OutputHeight : word(6) & 0xFFFF;
            InputWidth = Kind == Add ? OutputWidth : word(6) >> 16;
            OutputChannels = word(12) >> 16;
            InputChannels = Kind == Add ? OutputChannels : word(12) & 0xFFFF;
            KernelHeight = part(13, 0);
            KernelWidth = part(13, 1);
            StrideY = part(13, 2);
            StrideX = part(13, 3);
            DilationY = part(14, 0);
            DilationX = part(14, 1);
            PadTop = part(14, 2);
            PadLeft = part(14, 3);
            InputZero = (sbyte)part(15, 0);
            OutputZero = (sbyte)part(15, 1);
            ClampMin = (sbyte)part(15, 2);
            ClampMax = (sbyte)part(15, 3);
            ResidualParameters = word(19);
            ResidualZero = (sbyte)part(20, 0);
            SecondZero = (sbyte)part(20, 1);
            ResidualMin = (sbyte)part(20, 2);
            ResidualMax = (sbyte)part(20, 3);
            var add = Kind == Add;
            Source = new MacArrayTensor("input", Input, InputHeight, InputWidth, (int)word(7), (int)word(8), InputChannels, add);
            Second = add ? new MacArrayTensor("second input", Weights, OutputHeight, OutputWidth, (int)word(21), (int)word(22), OutputChannels, true)
                         : new MacArrayTensor("second input", Weights, AlongPixels ? OutputChannels : (uint)Depth, 1, (int)word(21), 0,
                                              AlongPixels ? Depth : OutputChannels);
            Output = new MacArrayTensor("own elements", word(5), OutputHeight, OutputWidth, (int)word(10), (int)word(11), OutputChannels * ResultBytes);
            var residual = (Flags & Residual) != 0;
            Extra = new MacArrayTensor(residual ? "residual" : "accumulators", word(16), OutputHeight, OutputWidth, (int)word(17), (int)word(18),
                                       OutputChannels * (residual ? 1u : 4u), true);
        }

        public uint ResultBytes { get { return (Flags & Raw) != 0 ? 4u : 1u; } }

        public ulong Taps { get { return (ulong)(KernelHeight * KernelWidth); } }

        // Products in one sum.
        public ulong Depth { get { return Kind == Convolution ? Taps * InputChannels : Taps; } }

        public bool HasFilter { get { return Kind == Convolution || Kind == Depthwise; } }

        // True if a convolution reads its weights from the second input: rows with a byte for each channel, or, along
        // pixels, rows with a byte for each product.
        public bool HasSecond { get { return (Flags & SecondInput) != 0; } }

        public bool AlongPixels { get { return Kind == Convolution && (Flags & Pixels) != 0; } }

        // True if two weights lie in a byte.
        public bool HasNibbles { get { return (Flags & Nibbles) != 0; } }

        public bool Multiplies { get { return (Flags & Product) != 0; } }

        // Products of a channel with a place in the weights.
        public ulong WeightRows { get { return HasNibbles && AlongPixels ? Divide(Depth, 2) * 2 : Depth; } }

        // Channels in a block of weights or parameters.
        public uint Block(MacArrayFigures figures)
        {
            return AlongPixels ? figures.Lanes : figures.Width;
        }

        // Bytes between the weights of a product and of the next, in a block that has `left` channels.
        public uint Columns(MacArrayFigures figures, uint left)
        {
            var columns = Block(figures);
            var halvings = Kind != Convolution || AlongPixels || HasSecond ? 0 : HasNibbles ? 1 : 2;
            for(; halvings > 0 && columns % 2 == 0 && left <= columns / 2; halvings--)
            {
                columns /= 2;
            }
            return columns;
        }

        // The error code of the first fault, or 0. The manual has no code for an output that overlaps operands: there
        // the result is undefined.
        public uint Check(MacArrayFigures figures, long memory, out string what)
        {
            what = "unknown kind";
            if(Kind < Convolution || Kind > AveragePool)
            {
                return ErrorKind;
            }
            what = "a size of zero, or a field out of range";
            if(!FieldsAreRight())
            {
                return ErrorField;
            }
            what = "weights or parameters that are not aligned";
            if(!Aligned())
            {
                return ErrorAlignment;
            }
            what = "an operand outside SRAM";
            var operands = Operands(figures).ToArray();
            if(!Output.LiesIn(memory) || (HasSecond && Depth * OutputChannels > (ulong)memory) || !operands.All(operand => operand.LiesIn(memory)))
            {
                return ErrorOperand;
            }
            var overlapped = Overlapped(operands, memory);
            what = "its output lies on its " + overlapped;
            return overlapped != null ? ErrorOperand : 0;
        }

        private static ulong Divide(ulong a, ulong b)
        {
            return (a + b - 1) / b;
        }

        private static int Applicable(int kind, int flags)
        {
            var weights = (flags & SecondInput) != 0 ? SecondInput : Nibbles;
            return kind == Convolution ? Pixels | Raw | Accumulate | Residual | weights
                   : kind == Depthwise ? Residual | Nibbles
                   : kind == Add ? Product : 0;
        }

        private bool FieldsAreRight()
        {
            var sizes = OutputHeight != 0 && OutputWidth != 0 && OutputChannels != 0;
            var flags = (Flags & Residual) == 0 || (Flags & (Accumulate | Raw)) == 0;
            return sizes && flags && (Kind == Add || KernelIsRight());
        }

        private bool KernelIsRight()
        {
            var sizes = InputHeight != 0 && InputWidth != 0 && InputChannels != 0 && KernelHeight != 0 && KernelWidth != 0;
            var steps = StrideY != 0 && StrideX != 0 && DilationY != 0 && DilationX != 0;
            return sizes && steps && (Kind == Convolution || InputChannels == OutputChannels);
        }

        private bool Aligned()
        {
            var weights = !HasFilter || HasSecond || Weights % 16 == 0;
            var parameters = !(HasFilter || Kind == Add) || Parameters % 4 == 0;
            return weights && parameters && ((Flags & Residual) == 0 || ResidualParameters % 4 == 0);
        }

        private IEnumerable<MacArrayTensor> Operands(MacArrayFigures figures)
        {
            yield return Source;
            if(Kind == Add || HasSecond)
            {
                yield return Second;
            }
            if(Kind == Add)
            {
                yield return Flat("parameters", Parameters, AdditionBytes);
            }
            if((Flags & (Accumulate | Residual)) != 0)
            {
                yield return Extra;
            }
            if((Flags & Residual) != 0)
            {
                yield return Flat("residual parameters", ResidualParameters, AdditionBytes);
            }
            if(HasFilter)
            {
                var channels = Divide(OutputChannels, Block(figures)) * Block(figures);
                if(!HasSecond)
                {
                    var left = OutputChannels % Block(figures);
                    var last = left == 0 ? 0 : Columns(figures, left);
                    yield return Flat("weights", Weights, Divide((OutputChannels - left + last) * WeightRows, HasNibbles ? 2u : 1u));
                }
                yield return Flat("parameters", Parameters, channels * figures.ParameterBytesPerChannel);
            }
        }

        private static MacArrayTensor Flat(string name, uint start, ulong bytes)
        {
            return new MacArrayTensor(name, start, 1, 1, 0, 0, bytes);
        }

        // The name of a tensor that the output may not overlap but does, or null.
        private string Overlapped(MacArrayTensor[] operands, long memory)
        {
            var near = operands.Where(operand => operand.IsInTheWayOf(Output)).ToArray();
            if(near.Length == 0 && Output.IsPlain)
            {
                return null;
            }
            var written = new bool[memory];
            if(Output.Any(at => written[at] || !(written[at] = true)))
            {
                return Output.Name;
            }
            return near.FirstOrDefault(operand => operand.Any(at => written[at]))?.Name;
        }

        public readonly int Kind, Flags;
        public readonly uint Next, Input, Weights, Parameters, ResidualParameters;
        public readonly uint InputHeight, InputWidth, InputChannels, OutputHeight, OutputWidth, OutputChannels;
        public readonly int KernelHeight, KernelWidth, StrideY, StrideX, DilationY, DilationX, PadTop, PadLeft;
        public readonly int InputZero, OutputZero, ClampMin, ClampMax, SecondZero, ResidualZero, ResidualMin, ResidualMax;
        public readonly MacArrayTensor Source, Second, Output, Extra;

        public const int Bytes = 96;
        public const int Convolution = 1, Depthwise = 2, Add = 3, MaximumPool = 4, AveragePool = 5;
        public const int Pixels = 1, Raw = 2, Accumulate = 4, Residual = 8, SecondInput = 16, Nibbles = 32, Product = 64;

        private const ulong AdditionBytes = 32;
        private const uint ErrorKind = 3, ErrorOperand = 4, ErrorAlignment = 5, ErrorField = 6;
    }
}
