"""Random streams of Cortex-M4F instructions, as programs that leave all registers and memory behind."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

RESULTS = 0x1_0000
DONE_AT, DONE = 0x1_EFF0, 0x600D600D
WORDS_OF_A_STREAM = 8 + 2 + 8 + 16
"""r0-r7, APSR, FPSCR, s0-s7, and the memory of the stream."""

_CONDITIONS = ("eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le")
_OPPOSITE = dict(zip(_CONDITIONS, (_CONDITIONS[n ^ 1] for n in range(14)), strict=True))
_THREE = ("add", "sub", "and", "orr", "eor", "bic", "orn", "adc", "sbc")
_PARALLEL = tuple(
    f"{p}{op}" for p in ("s", "q", "sh", "u", "uq", "uh") for op in ("add8", "sub8", "add16", "sub16", "asx", "sax")
)
_HALVES = (
    "smulbb",
    "smulbt",
    "smultb",
    "smultt",
    "smulwb",
    "smulwt",
    "smuad",
    "smuadx",
    "smusd",
    "smusdx",
    "smmul",
    "smmulr",
)
_ADDED = (
    "mla",
    "mls",
    "smlabb",
    "smlabt",
    "smlatb",
    "smlatt",
    "smlawb",
    "smlawt",
    "smlad",
    "smladx",
    "smlsd",
    "smlsdx",
    "smmla",
    "smmlar",
    "smmls",
    "smmlsr",
    "usada8",
)
_LONG = ("smull", "umull", "smlal", "umlal", "umaal", "smlalbb", "smlaltt", "smlald", "smlaldx", "smlsld")
_ONE = ("clz", "rbit", "rev", "rev16", "revsh", "mvn", "mvns", "negs")
_FLOATS = ("vadd", "vsub", "vmul", "vnmul", "vdiv", "vmla", "vmls", "vnmla", "vfma", "vfms", "vfnma", "vfnms")
_FLOAT_ONE = (
    "vneg.f32",
    "vabs.f32",
    "vsqrt.f32",
    "vcvt.s32.f32",
    "vcvt.u32.f32",
    "vcvtr.s32.f32",
    "vcvt.f32.s32",
    "vcvt.f32.u32",
    "vcvtb.f16.f32",
    "vcvtb.f32.f16",
)


def program_text(seed: int, streams: int, length: int) -> str:
    """A C program for `programs.program`: `streams` streams one after another, then `DONE` at `DONE_AT`."""
    random = Random(seed)
    lines = [line for _ in range(streams) for line in _stream(random, length)]
    text = "\n".join(
        f'    "{line}\\n\\t"' for line in ["push {r4-r11, lr}", _load("r9", RESULTS), *lines, "pop {r4-r11, pc}"]
    )
    return f"""#include <stdint.h>
__attribute__((naked)) void streams(void);
void streams(void)
{{
    __asm volatile(
{text}
    );
}}
int main(void)
{{
    *(volatile uint32_t *)0xE000ED88U |= 0xFU << 20; /* the FPU */
    __asm volatile("dsb\\n\\tisb" ::: "memory");
    streams();
    *(volatile uint32_t *){DONE_AT:#x} = {DONE:#x}U;
    return 0;
}}
"""


def _stream(random: Random, length: int) -> list[str]:
    """Random registers and memory, the instructions, then stores of all results behind the last results."""
    start = [_load(f"r{n}", _interesting(random)) for n in range(8)]
    memory = [_load("r10", random.getrandbits(32)) + f"\\n\\tstr r10, [r9, #{4 * n}]" for n in range(18, 34)]
    floats = [f"{_load('r10', _float_bits(random))}\\n\\tvmov s{n}, r10" for n in range(8)]
    flags = [
        _load("r10", random.getrandbits(5) << 27 | random.getrandbits(4) << 16),
        "msr apsr_nzcvqg, r10",
        "mov r10, #0",
        "vmsr fpscr, r10",
    ]
    body = [line for _ in range(length) for line in random.choice(_KINDS)(random).split("|")]
    end = [
        "stmia r9!, {r0-r7}",
        "mrs r10, apsr",
        "str r10, [r9], #4",
        "vmrs r10, fpscr",
        "str r10, [r9], #4",
        "vstmia r9!, {s0-s7}",
        "add r9, r9, #64",
    ]
    return [*start, *memory, "add r8, r9, #72", *floats, *flags, *body, *end]


def _load(register: str, value: int) -> str:
    return f"movw {register}, #{value & 0xFFFF}\\n\\tmovt {register}, #{value >> 16}"


def _interesting(random: Random) -> int:
    return random.choice(
        (
            0,
            1,
            0x7FFF_FFFF,
            0x8000_0000,
            0xFFFF_FFFF,
            0x80,
            0xFF80,
            random.getrandbits(8),
            *(random.getrandbits(32) for _ in range(6)),
        )
    )


def _float_bits(random: Random) -> int:
    """Bits of ordinary numbers, and some at the limits of the range."""
    ordinary = random.getrandbits(1) << 31 | random.randrange(100, 150) << 23 | random.getrandbits(23)
    return random.choice(
        (ordinary, ordinary, ordinary, 0, 0x8000_0000, 0x7F80_0000, 0x7FC0_0000, 1, random.getrandbits(32))
    )


def _r(random: Random) -> str:
    return f"r{random.randrange(8)}"


def _s(random: Random) -> str:
    return f"s{random.randrange(8)}"


def _three(random: Random) -> str:
    shift = random.choice(
        (
            "",
            "",
            f", lsl #{random.randrange(32)}",
            f", {random.choice(('lsr', 'asr', 'ror'))} #{random.randrange(1, 32)}",
            ", rrx",
        )
    )
    return f"{random.choice(_THREE)}{random.choice(('', 's'))} {_r(random)}, {_r(random)}, {_r(random)}{shift}"


def _constant(random: Random) -> str:
    byte = random.randrange(256)
    value = random.choice(
        (byte, byte << 16 | byte, byte << 24 | byte << 8, byte * 0x0101_0101, byte << random.randrange(24))
    )
    op = random.choice(("adds", "subs", "ands", "orr", "eors", "rsbs", "adcs", "sbcs"))
    return f"{op} {_r(random)}, {_r(random)}, #{value}"


def _shift(random: Random) -> str:
    amount = random.choice((_r(random), f"#{random.randrange(1, 32)}"))
    return f"{random.choice(('lsls', 'lsrs', 'asrs', 'rors'))} {_r(random)}, {_r(random)}, {amount}"


def _compare(random: Random) -> str:
    return f"{random.choice(('cmp', 'cmn', 'tst', 'teq'))} {_r(random)}, {_r(random)}"


def _two_operands(random: Random) -> str:
    op = random.choice((*_PARALLEL, *_HALVES, "mul", "sdiv", "udiv", "qadd", "qsub", "qdadd", "qdsub", "sel", "usad8"))
    return f"{op} {_r(random)}, {_r(random)}, {_r(random)}"


def _added(random: Random) -> str:
    return f"{random.choice(_ADDED)} {_r(random)}, {_r(random)}, {_r(random)}, {_r(random)}"


def _long(random: Random) -> str:
    low, high = random.sample(range(8), 2)
    return f"{random.choice(_LONG)} r{low}, r{high}, {_r(random)}, {_r(random)}"


def _one(random: Random) -> str:
    return f"{random.choice(_ONE)} {_r(random)}, {_r(random)}"


def _extend(random: Random) -> str:
    kind = random.choice(("sxtb", "uxtb", "sxth", "uxth", "sxtb16", "uxtb16"))
    turn = random.choice(("", ", ror #8", ", ror #16", ", ror #24"))
    if random.getrandbits(1):
        return f"{kind[0]}xta{kind[3:]} {_r(random)}, {_r(random)}, {_r(random)}{turn}"
    return f"{kind} {_r(random)}, {_r(random)}{turn}"


def _bits(random: Random) -> str:
    low = random.randrange(32)
    width = random.randrange(1, 33 - low)
    op = random.choice(("ubfx", "sbfx", "bfi", "bfc"))
    source = "" if op == "bfc" else f", {_r(random)}"
    return f"{op} {_r(random)}{source}, #{low}, #{width}"


def _saturate(random: Random) -> str:
    op, most, least = random.choice((("ssat", 33, 1), ("usat", 32, 0), ("ssat16", 17, 1), ("usat16", 16, 0)))
    shift = random.choice(("", f", lsl #{random.randrange(1, 32)}", f", asr #{random.randrange(1, 32)}"))
    return f"{op} {_r(random)}, #{random.randrange(least, most)}, {_r(random)}{'' if op.endswith('16') else shift}"


def _pack(random: Random) -> str:
    op = random.choice(
        (
            f"pkhbt {{}}, {{}}, {{}}, lsl #{random.randrange(1, 32)}",
            f"pkhtb {{}}, {{}}, {{}}, asr #{random.randrange(1, 32)}",
        )
    )
    return op.format(_r(random), _r(random), _r(random))


def _conditional(random: Random) -> str:
    condition = random.choice(_CONDITIONS)
    first, second = (
        f"add{condition} {_r(random)}, {_r(random)}, {_r(random)}",
        f"mov{{}} {_r(random)}, #{random.randrange(256)}",
    )
    if random.getrandbits(1):
        return f"ite {condition}|{first}|{second.format(_OPPOSITE[condition])}"
    return f"itt {condition}|{first}|str{condition} {_r(random)}, [r8, #{4 * random.randrange(16)}]"


def _memory(random: Random) -> str:
    op, size = random.choice(
        (("ldr", 4), ("str", 4), ("ldrb", 1), ("strb", 1), ("ldrh", 2), ("strh", 2), ("ldrsb", 1), ("ldrsh", 2))
    )
    return f"{op} {_r(random)}, [r8, #{random.randrange(65 - size)}]"


def _memory_pair(random: Random) -> str:
    first, second = random.sample(range(8), 2)
    return f"{random.choice(('ldrd', 'strd'))} r{first}, r{second}, [r8, #{4 * random.randrange(15)}]"


def _memory_list(random: Random) -> str:
    chosen = ", ".join(f"r{n}" for n in sorted(random.sample(range(8), random.randrange(2, 8))))
    base = f"add r10, r8, #{4 * random.randrange(9)}"
    return f"{base}|{random.choice(('ldmia', 'stmia'))} r10{random.choice(('', '!'))}, {{{chosen}}}"


def _float(random: Random) -> str:
    return f"{random.choice(_FLOATS)}.f32 {_s(random)}, {_s(random)}, {_s(random)}"


def _float_one(random: Random) -> str:
    return f"{random.choice(_FLOAT_ONE)} {_s(random)}, {_s(random)}"


def _float_moves(random: Random) -> str:
    return random.choice(
        (
            f"vmov {_r(random)}, {_s(random)}",
            f"vmov {_s(random)}, {_r(random)}",
            f"vcmp.f32 {_s(random)}, {_s(random)}|vmrs apsr_nzcv, fpscr",
            f"vldr {_s(random)}, [r8, #{4 * random.randrange(16)}]",
            f"vstr {_s(random)}, [r8, #{4 * random.randrange(16)}]",
        )
    )


_KINDS: tuple[Callable[[Random], str], ...] = (
    *(
        _three,
        _constant,
        _shift,
        _compare,
        _two_operands,
        _two_operands,
        _added,
        _long,
        _one,
        _extend,
        _bits,
        _saturate,
    ),
    *(_pack, _conditional, _memory, _memory_pair, _memory_list, _float, _float, _float_one, _float_moves),
)
