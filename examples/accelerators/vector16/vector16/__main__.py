"""`python -m vector16 OUT/project/net/constants.c`: the programs in the C of a build, disassembled."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from .instructions import disassemble

for name, words in re.findall(r"\.(\w+_program) = \{([^}]*)\}", Path(sys.argv[1]).read_text()):
    print(f"{name}:")
    for instruction in disassemble([int(word) for word in words.split(",") if word.strip()]):
        print(f"    {instruction}")
