"""The HTTP server exempts the objects of the start-up from garbage collection.

The test runs `run_server` in its own process, because the exemption is global to a process.
"""

import subprocess
import sys

# The application prints how many objects are exempt, and ends the server.
SCRIPT = """
import gc
from caret.foundation.web.server import run_server

async def application(scope, receive, send):
    print(gc.get_freeze_count())
    await receive()
    await send({"type": "lifespan.startup.failed"})

run_server("__main__:application", host="127.0.0.1", port=0)
"""


def test_the_start_up_heap_is_exempt_from_garbage_collection() -> None:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False
    )

    num_exempt = int(result.stdout.splitlines()[-1])
    assert num_exempt > 10_000  # the imported modules have more objects than this
