"""Stand-in for Renode in tests of the launcher: `fake_renode.py BEHAVIOUR` and Renode's own arguments.

echo: returns its input in capitals. deaf: reads and hangs up. error: prints an error, stays. gone: ends at once.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    behaviour, commands = sys.argv[1], sys.argv[sys.argv.index("-e") + 1]
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    Path(__file__).with_name("child").write_text(str(child.pid))
    Path(__file__).with_name("arguments").write_text("\n".join(sys.argv[2:]))
    if behaviour == "gone":
        child.kill()
        return
    if behaviour == "error":
        print("There was an error executing command 'include'\nNo such thing", flush=True)
        time.sleep(60)
    found = re.search(r"\$port=(\d+)", commands)
    assert found
    with socket.create_server(("127.0.0.1", int(found[1]))) as listener:
        serve(listener.accept()[0], behaviour)


def serve(host: socket.socket, behaviour: str) -> None:
    while (data := host.recv(100)) and behaviour == "echo":
        host.sendall(data.upper())


main()
