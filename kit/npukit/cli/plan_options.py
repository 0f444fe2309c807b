"""Options common to `build` and `fit`, from the command line."""

from __future__ import annotations

from dataclasses import dataclass

from npukit.cli.options import (
    ActivationRanges,
    Aim,
    BoardName,
    Calibration,
    Chips,
    CustomOps,
    EndTypes,
    InFloat,
    InputShapes,
    Io,
    KeepFloat,
    KeepInt16,
    Objective,
    OnlyEngine,
    OwnPlan,
    Pes,
    Postprocess,
    Preprocess,
    Ranges,
    Rate,
    SelfTests,
    States,
    Strict,
    Traces,
    parsed_custom,
    parsed_shapes,
    parsed_states,
)
from npukit.options import Options


@dataclass(frozen=True)
class PlanOptions:
    """The options, in the order of --help."""

    board: BoardName = "pe-mesh"
    pes: Pes = None
    chips: Chips = None
    engine: OnlyEngine = None
    objective: Aim = Objective.LATENCY
    fps: Rate = None
    plan: OwnPlan = None
    strict: Strict = False
    trace: Traces = False
    self_test: SelfTests = False
    shapes: InputShapes = None
    states: States = None
    custom: CustomOps = None
    calibration: Calibration = None
    ranges: ActivationRanges = Ranges.MINMAX
    preprocess: Preprocess = None
    postprocess: Postprocess = None
    io: EndTypes = Io.FILE
    in_float: InFloat = False
    keep_float: KeepFloat = None
    keep_int16: KeepInt16 = None

    def options(self, pes: int | None, toolchain: str | None = None) -> Options:
        """The options for `npukit.api`. `pes`: limit of a single network; None for several, each with a limit of its
        own."""
        return Options(
            pes=pes,
            chips=self.chips,
            engine=self.engine,
            objective=self.objective,
            frames_per_second=self.fps,
            plan=self.plan,
            strict=self.strict,
            trace=self.trace,
            self_test=self.self_test,
            toolchain=toolchain,
            input_shapes=parsed_shapes(self.shapes),
            states=parsed_states(self.states),
            custom=parsed_custom(self.custom),
            calibration=self.calibration,
            ranges=self.ranges,
            preprocess=tuple(self.preprocess or ()),
            postprocess=tuple(self.postprocess or ()),
            io=self.io,
            in_float=self.in_float,
            keep_float=tuple(self.keep_float or ()),
            keep_int16=tuple(self.keep_int16 or ()),
        )
