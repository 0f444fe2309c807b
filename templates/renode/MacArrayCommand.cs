// The MAC array's commands: boards/pe-mesh.md, sections 3.2 and 3.5.
using System;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class MacArrayFigures
    {
        public uint Width, Lanes, PortBytes, SetupCycles, AccumulatorBits, OperandBytesPerLane, ParameterBytesPerChannel;
    }

    // A tensor in memory: height x width pixels of so many bytes.
    public struct MacArrayTensor
    {
        public MacArrayTensor(uint start, uint height, uint width, int rowStride, int pixelStride, ulong pixelBytes)
        {
            this.start = start;
            this.height = height;
            this.width = width;
            this.rowStride = rowStride;
            this.pixelStride = pixelStride;
            this.pixelBytes = pixelBytes;
        }

        public long At(long y, long x)
        {
            return start + y * rowStride + x * pixelStride;
        }

        public bool LiesIn(long size)
        {
            long rows = (long)(height - 1) * rowStride, pixels = (long)(width - 1) * pixelStride;
            return start + Math.Min(rows, 0) + Math.Min(pixels, 0) >= 0 &&
                   start + Math.Max(rows, 0) + Math.Max(pixels, 0) + (long)pixelBytes <= size;
        }

        private readonly uint start, height, width;
        private readonly int rowStride, pixelStride;
        private readonly ulong pixelBytes;
    }

    // A command: its fields, what is wrong with them, and the cycles it takes.
    public class MacArrayCommand
    {
        public MacArrayCommand(byte[] memory, int address)
        {
            Func<int, uint> word = n => BitConverter.ToUInt32(memory, address + 4 * n);
            Func<int, int, byte> part = (n, i) => memory[address + 4 * n + i];
            Next = word(0);
            Kind = part(1, 0);
            Flags = part(1, 1) & Applicable(Kind);
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
            ResidualMin = (sbyte)part(20, 2);
            ResidualMax = (sbyte)part(20, 3);
            Source = new MacArrayTensor(Input, InputHeight, InputWidth, (int)word(7), (int)word(8), InputChannels);
            Second = new MacArrayTensor(Weights, OutputHeight, OutputWidth, (int)word(21), (int)word(22), OutputChannels);
            Output = new MacArrayTensor(word(5), OutputHeight, OutputWidth, (int)word(10), (int)word(11), OutputChannels * ResultBytes);
            var extraBytes = (Flags & Residual) != 0 ? 1u : 4u;
            Extra = new MacArrayTensor(word(16), OutputHeight, OutputWidth, (int)word(17), (int)word(18), OutputChannels * extraBytes);
        }

        public uint ResultBytes { get { return (Flags & Raw) != 0 ? 4u : 1u; } }

        public ulong Taps { get { return (ulong)(KernelHeight * KernelWidth); } }

        // Products in one sum.
        public ulong Depth { get { return Kind == Convolution ? Taps * InputChannels : Taps; } }

        public bool HasFilter { get { return Kind == Convolution || Kind == Depthwise; } }

        public bool AlongPixels { get { return Kind == Convolution && (Flags & Pixels) != 0; } }

        // Channels in a block of weights or parameters.
        public uint Block(MacArrayFigures figures)
        {
            return AlongPixels ? figures.Lanes : figures.Width;
        }

        // The error code of what is wrong, or 0.
        public uint Check(MacArrayFigures figures, long memory)
        {
            if(Kind < Convolution || Kind > AveragePool)
            {
                return ErrorKind;
            }
            if(!FieldsAreRight())
            {
                return ErrorField;
            }
            if(!Aligned())
            {
                return ErrorAlignment;
            }
            return TensorsLieIn(memory) && ConstantsLieIn(figures, memory) ? 0 : ErrorOperand;
        }

        // Section 3.5.
        public ulong Cycles(MacArrayFigures figures)
        {
            ulong pixels = (ulong)OutputHeight * OutputWidth, blocks = Divide(OutputChannels, figures.Width);
            switch(Kind)
            {
            case Convolution:
                return figures.SetupCycles + ConvolutionCycles(figures, pixels);
            case Depthwise:
                var residual = (Flags & Residual) != 0 ? pixels * blocks : 0;
                return figures.SetupCycles + blocks * (ParameterCycles(figures, figures.Width) + Taps) + pixels * blocks * (Taps + 1) + residual;
            case Add:
                return figures.SetupCycles + 3 * Divide(pixels * OutputChannels, figures.Width);
            default:
                return figures.SetupCycles + pixels * blocks * (Taps + 1);
            }
        }

        private ulong ConvolutionCycles(MacArrayFigures figures, ulong pixels)
        {
            ulong blocks = Divide(OutputChannels, Block(figures)), groups = Divide(pixels, AlongPixels ? figures.Width : figures.Lanes);
            ulong streamed = AlongPixels ? groups : blocks, held = AlongPixels ? blocks : groups;
            var load = Divide(figures.Lanes * Depth, figures.PortBytes);
            var loads = Depth <= figures.OperandBytesPerLane ? 1 : streamed;
            return blocks * ParameterCycles(figures, Block(figures)) + load * held * loads + groups * blocks * (Depth + WriteBackCycles(figures));
        }

        private ulong WriteBackCycles(MacArrayFigures figures)
        {
            ulong results = Divide(figures.Width * figures.Lanes, figures.PortBytes);
            var extra = (Flags & Accumulate) != 0 ? 4 * results : (Flags & Residual) != 0 ? results : 0;
            return ResultBytes * results + extra;
        }

        private static ulong ParameterCycles(MacArrayFigures figures, uint channels)
        {
            return Divide(channels * figures.ParameterBytesPerChannel, figures.PortBytes);
        }

        private static ulong Divide(ulong a, ulong b)
        {
            return (a + b - 1) / b;
        }

        private static int Applicable(int kind)
        {
            return kind == Convolution ? Pixels | Raw | Accumulate | Residual : kind == Depthwise ? Residual : 0;
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
            var weights = !HasFilter || Weights % 16 == 0;
            var parameters = !(HasFilter || Kind == Add) || Parameters % 4 == 0;
            return weights && parameters && ((Flags & Residual) == 0 || ResidualParameters % 4 == 0);
        }

        private bool TensorsLieIn(long memory)
        {
            var extra = (Flags & (Accumulate | Residual)) == 0 || Extra.LiesIn(memory);
            return Source.LiesIn(memory) && Output.LiesIn(memory) && extra && (Kind != Add || Second.LiesIn(memory));
        }

        private bool ConstantsLieIn(MacArrayFigures figures, long memory)
        {
            if(Kind == Add)
            {
                return Parameters + AdditionBytes <= memory;
            }
            var channels = Divide(OutputChannels, Block(figures)) * Block(figures);
            var filter = !HasFilter || (Weights + channels * Depth <= (ulong)memory &&
                                        Parameters + channels * figures.ParameterBytesPerChannel <= (ulong)memory);
            return filter && ((Flags & Residual) == 0 || ResidualParameters + AdditionBytes <= memory);
        }

        public readonly int Kind, Flags;
        public readonly uint Next, Input, Weights, Parameters, ResidualParameters;
        public readonly uint InputHeight, InputWidth, InputChannels, OutputHeight, OutputWidth, OutputChannels;
        public readonly int KernelHeight, KernelWidth, StrideY, StrideX, DilationY, DilationX, PadTop, PadLeft;
        public readonly int InputZero, OutputZero, ClampMin, ClampMax, ResidualZero, ResidualMin, ResidualMax;
        public readonly MacArrayTensor Source, Second, Output, Extra;

        public const int Bytes = 96;
        public const int Convolution = 1, Depthwise = 2, Add = 3, MaximumPool = 4, AveragePool = 5;
        public const int Pixels = 1, Raw = 2, Accumulate = 4, Residual = 8;

        private const long AdditionBytes = 32;
        private const uint ErrorKind = 3, ErrorOperand = 4, ErrorAlignment = 5, ErrorField = 6;
    }
}
