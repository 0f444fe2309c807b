"""C from a network file: the sandbox allows computation, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from npukit.errors import NpukitError
from npukit.net.c_code.function import check_code
from npukit.net.check import check_net
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.reference.interpreter import run_reference
from npukit.net.tensor import Tensor

VALUES = np.array([[0.5, -1.5, 3.0, 0.0]], np.float32)


def net_of(code: str, work_bytes: int = 0) -> Net:
    tensors = {name: Tensor(name, (4,), "float32") for name in ("x", "y")}
    op = Op("strange", TvmCode("strange", code, work_bytes), ("x",), ("y",))
    return Net("net", ("x",), ("y",), (op,), tensors, {})


def result(code: str, work_bytes: int = 0) -> list[float]:
    (output,) = run_reference(net_of(code, work_bytes), [VALUES])
    return output[0].tolist()


def test_arithmetic_is_computed_with_workspace_and_libm():
    code = """
      for (int32_t i = 0; i < 4; ++i) { ((float *)(void *)work)[i] = expf(p0[i]); }
      for (int32_t i = 0; i < 4; ++i) { output[i] = ((float *)(void *)work)[3 - i] * 2.0f; }
    """
    assert result(code, 16) == pytest.approx((2 * np.exp(VALUES[0][::-1])).tolist(), rel=1e-6)


def test_each_case_begins_with_a_memory_of_its_own():
    net = net_of("  output[0] = output[0] + p0[0];\n")
    (outputs,) = run_reference(net, [np.repeat(VALUES, 3, axis=0)])
    assert outputs[:, 0].tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("  output[500000000] = 1.0f;\n", "out of bounds memory access"),
        ("  output[-500000000] = p0[-400000000];\n", "out of bounds memory access"),
        ("  while (1) { output[0] += 1.0f; }\n", "fuel"),
        ("  ((void (*)(const float *))(void *)(work + 4096))(p0);\n", "wasm trap"),
        ("  system/**/(p0);\n", "not plain C arithmetic"),
        ("  (system)(p0);\n", "cannot be compiled"),
        ("  (abort)();\n", "cannot be compiled"),
        ("  return; }\n void function_0(void) {\n", "cannot be compiled"),
    ],
)
def test_what_would_do_more_than_compute_is_a_named_error(code: str, why: str):
    with pytest.raises(NpukitError, match=why):
        run_reference(check_net(net_of(code, 8)), [VALUES])


@pytest.mark.parametrize(
    "text",
    [
        '#include "/etc/passwd"',
        '%:include "/etc/passwd"',
        '??=include "/etc/passwd"',
        "#embed </etc/passwd>",
        'asm(".incbin \\"/etc/passwd\\"")',
        "asm volatile (0)",
        "__asm__(0)",
        "_Pragma(0)",
        "static int32_t x;",
        "/* comment */",
        "// comment",
        "a \\\n b",
        "'a'",
        "<:0:>",
        "é = 1",
    ],
)
def test_no_text_can_have_a_compiler_read_a_file(text: str):
    with pytest.raises(NpukitError, match="not plain C arithmetic"):
        check_code(f"  output[0] = 1.0f;\n{text}\n")


def test_code_of_any_length_ends_soon():
    with pytest.raises(NpukitError, match="characters"):
        check_code("a;" * (1 << 20))


def test_code_leaves_nothing_on_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    result("  output[0] = p0[0];\n")
    assert not list(tmp_path.iterdir())


def test_memory_is_bounded():
    net = net_of("  output[0] = 1.0f;\n")
    huge = replace(net.ops[0], attributes=TvmCode("strange", "  output[0] = 1.0f;\n", 3 << 30))
    with pytest.raises(NpukitError, match="memory"):
        run_reference(net.with_ops((huge,)), [VALUES])
