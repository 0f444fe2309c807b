// SPDX-License-Identifier: Apache-2.0
// Cycles of the MAC array's commands: boards/pe-mesh.md, section 3.5.
using System;

namespace Antmicro.Renode.Peripherals.PeMesh
{
    public class MacArrayFigures
    {
        public uint Width, Lanes, PortBytes, Requantisers, WindowRows, ParameterBlocks, ParameterBytesPerChannel, AccumulatorBits;
        public uint SetupCycles, ChainCycles, DrainCycles;
    }

    public class MacArrayCycles
    {
        public MacArrayCycles(MacArrayFigures figures, MacArrayCommand command)
        {
            this.figures = figures;
            this.command = command;
            blocks = Divide(command.OutputChannels, command.Block(figures));
            pixels = (ulong)command.OutputHeight * command.OutputWidth;
        }

        // `first`: the command is the first of the chain.
        public ulong All(bool first)
        {
            var constants = command.Kind == MacArrayCommand.Add || Has(MacArrayCommand.Residual) ? 1u : 0u;
            return (first ? figures.SetupCycles : figures.ChainCycles) + constants + Work();
        }

        private ulong Work()
        {
            switch(command.Kind)
            {
            case MacArrayCommand.Convolution:
                return command.AlongPixels ? AlongPixels() : AcrossChannels();
            case MacArrayCommand.Depthwise:
                return Depthwise();
            case MacArrayCommand.Add:
                return Addition();
            default:
                return Pool();
            }
        }

        private ulong AcrossChannels()
        {
            var groups = Divide(pixels, figures.Lanes);
            var second = Has(MacArrayCommand.SecondInput);
            var paired = pixels <= figures.Lanes / 2 && !second;
            var held = paired ? pixels : figures.Lanes;
            var sums = paired ? Runs * Divide(RunBytes, 2) : command.Depth;
            var columns = blocks > 1 ? figures.Width : command.Columns(figures, command.OutputChannels);
            var weights = second ? command.Depth
                          : paired ? Runs * WeightAccesses(RunBytes * columns)
                          : WeightAccesses(command.Depth * columns);
            ulong write = Written(held), requantise = Requantised(held * figures.Width), half = figures.WindowRows / 2;
            var kept = blocks <= figures.ParameterBlocks;
            var alone = groups == 1 && Rows <= figures.WindowRows;
            var loads = alone ? 0 : Rows <= half ? Divide(held * Rows, blocks) : held * Rows;
            var step = Math.Max(Math.Max(sums, requantise), weights + write + loads + (kept ? 0 : Parameters(figures.Width)));
            var before = (kept ? Parameters(figures.Width) * blocks : 0) + held * (alone ? Rows : Math.Min(Rows, half));
            return before + groups * blocks * step + Drain(requantise, write);
        }

        private ulong AlongPixels()
        {
            var held = Has(MacArrayCommand.SecondInput) ? figures.Lanes * Divide(command.Depth, figures.Width)
                                                        : WeightAccesses(figures.Lanes * command.Depth);
            var once = command.Depth <= figures.WindowRows * figures.Width;
            ulong write = figures.Width * (Has(MacArrayCommand.Accumulate | MacArrayCommand.Residual) ? 2u : 1u);
            ulong requantise = Requantised(figures.Width * figures.Lanes);
            var step = Math.Max(requantise, figures.Width * Rows + write + (once ? 0 : held));
            var before = blocks * (Parameters(figures.Lanes) + (once ? held : 0));
            return before + Divide(pixels, figures.Width) * blocks * step + figures.Width + Drain(requantise, write);
        }

        private ulong Depthwise()
        {
            ulong columns = (ulong)((command.KernelWidth - 1) * command.DilationX + 1);
            var before = blocks * Parameters(figures.Width);
            var vectors = (ulong)command.KernelHeight * columns;
            var tight = command.StrideY * command.StrideX > 2 && 2 * vectors > figures.WindowRows;
            if(pixels == 1 || vectors > figures.WindowRows || tight)
            {
                return before + PixelByPixel();
            }
            ulong lanes = Math.Min(figures.Lanes, command.OutputHeight), loaded = Math.Min((ulong)command.StrideX, columns);
            var column = (lanes - 1) * (ulong)command.StrideY + (ulong)((command.KernelHeight - 1) * command.DilationY + 1);
            ulong write = Written(lanes), requantise = Requantised(lanes * figures.Width);
            var step = Math.Max(Math.Max(command.Taps, requantise), StreamedWeights(command.Taps) + loaded * column + write);
            var strip = (columns - loaded) * column + command.OutputWidth * step;
            return before + blocks * Divide(command.OutputHeight, figures.Lanes) * strip + Drain(requantise, write);
        }

        private ulong PixelByPixel()
        {
            ulong write = Written(1), requantise = Requantised(figures.Width);
            var step = Math.Max(requantise, command.Taps + StreamedWeights(command.Taps) + write);
            return pixels * blocks * step + Drain(requantise, write);
        }

        private ulong Pool()
        {
            var finish = Divide(figures.Width, figures.Requantisers);
            return pixels * blocks * Math.Max(command.Taps + 1, finish) + Drain(finish, 1);
        }

        private ulong Addition()
        {
            var dense = command.Source.PixelStride == command.OutputChannels && command.Second.PixelStride == command.OutputChannels &&
                        command.Output.PixelStride == command.OutputChannels;
            var rows = dense ? command.OutputHeight : pixels;
            var bytes = dense ? (ulong)command.OutputWidth * command.OutputChannels : command.OutputChannels;
            var piece = Divide(3 * figures.Width, figures.Requantisers);
            return rows * Divide(bytes, figures.Width) * piece + Drain(piece, 1);
        }

        // Runs of consecutive bytes in the input of an output pixel.
        private ulong Runs { get { return Dense ? (ulong)command.KernelHeight : command.Taps; } }

        private ulong RunBytes { get { return (Dense ? (ulong)command.KernelWidth : 1) * command.InputChannels; } }

        private ulong Rows { get { return Runs * Divide(RunBytes, figures.Width); } }

        private bool Dense { get { return command.DilationX == 1 && command.Source.PixelStride == command.InputChannels; } }

        private bool Has(int flags)
        {
            return (command.Flags & flags) != 0;
        }

        private ulong Requantised(ulong results)
        {
            var products = Has(MacArrayCommand.Residual) ? 4u : Has(MacArrayCommand.Raw) ? 0u : 1u;
            return Divide(products * results, figures.Requantisers);
        }

        private ulong Written(ulong held)
        {
            var added = Has(MacArrayCommand.Accumulate) ? 4u : Has(MacArrayCommand.Residual) ? 1u : 0u;
            return held * (command.ResultBytes + added);
        }

        private ulong StreamedWeights(ulong steps)
        {
            return WeightAccesses(steps * figures.Width);
        }

        private ulong WeightAccesses(ulong weights)
        {
            return Divide(weights, figures.PortBytes * (command.HasNibbles ? 2u : 1u));
        }

        private ulong Parameters(ulong channels)
        {
            return Divide(channels * figures.ParameterBytesPerChannel, figures.PortBytes);
        }

        private ulong Drain(ulong requantise, ulong write)
        {
            return figures.DrainCycles + Math.Max(requantise, write);
        }

        private static ulong Divide(ulong a, ulong b)
        {
            return (a + b - 1) / b;
        }

        private readonly MacArrayFigures figures;
        private readonly MacArrayCommand command;
        private readonly ulong blocks, pixels;
    }
}
