"""The wall clocks of hosts: the offset of each is in a file that the library of `clock.c` reads."""

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_name("clock.c")


@dataclass(frozen=True, slots=True)
class Clocks:
    """The folder with the hosts' clocks, and the compiled library."""

    folder: Path
    library: Path

    def environment_on(self, host: str) -> dict[str, str]:
        """Return the environment for processes that are started on this host."""
        file = self._file(host)
        if not file.exists():
            self.set_offset(host, by_s=0.0)
        return {"LD_PRELOAD": str(self.library), "CARET_CHAOS_CLOCK": str(file)}

    def set_offset(self, host: str, *, by_s: float) -> None:
        """Set how far the host's clock is ahead of the machine's."""
        with self._file(host).open("r+b" if self._file(host).exists() else "wb") as stream:
            # Microseconds, as a 64-bit integer; in place, because the file is memory-mapped.
            stream.write(struct.pack("q", int(by_s * 1e6)))

    def _file(self, host: str) -> Path:
        return self.folder / f"{host}.clock"


def make_clocks(folder: Path) -> Clocks:
    """Compile the library.

    Raises SystemExit without a C compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("Clock skew needs a preloaded library, and so a C compiler: install cc.")
    library = folder / "clock.so"
    options = ("-shared", "-fPIC", "-O2", "-o", str(library))
    subprocess.run((compiler, *options, str(_SOURCE)), check=True)
    return Clocks(folder, library)
