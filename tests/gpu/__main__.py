"""Measure the engine profiles on one NVIDIA GPU, step by step, without a network.

    python -m tests.gpu [--minutes 9] [--shape real | tiny] [--results FILE] [--only STEP]
        [--list] [--install [WHEELS]]

The models have the shapes of a 1.5B model (profile `fast`) and a 7B model (profile `quality`), and
random weights, because only the speed counts. `--shape tiny` runs the same steps with a very small
model, also on a CPU. Its figures are not compared with targets.

Each step prints its figures as JSON lines and saves them in the results file. A second call runs
the missing steps. A step that would not end within `--minutes` is not started.

`--install` first installs the packages of platform/locks/gpu.txt: from the network, or from WHEELS,
a folder of wheels. The time of the installation is not part of `--minutes`.

Exit codes:
  0  no step failed and no target was missed; steps may still be missing
  1  a step failed or missed a target
  2  a bad option or results file
  5  a missing GPU, engine or package
  Other codes come from platform/scripts/setup, which `--install` runs.
"""

import argparse
import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Only modules without dependencies: the packages may not be installed yet.
from tests.gpu.requirements import MISSING_FEATURE, Refusal, find_gpu

_REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    try:
        if options.install is not None:
            _install(options.install, arguments)
        return _run(options)
    except Refusal as refusal:
        sys.stderr.write(f"{refusal}\n")
        return refusal.exit_code


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # _install removes its option by its full name
    )
    parser.add_argument("--minutes", type=float, default=9.0, help="duration of this call")
    parser.add_argument("--shape", choices=("real", "tiny"), default="real")
    parser.add_argument("--results", type=Path, help="default: .caret/gpu/SHAPE.json")
    parser.add_argument("--only", metavar="STEP", help="run this step, even if it is done")
    parser.add_argument("--list", action="store_true", help="list the steps and end")
    parser.add_argument("--install", nargs="?", const="", metavar="WHEELS")
    options = parser.parse_args(arguments)
    if options.minutes <= 0:
        parser.error("--minutes must be above 0")
    if options.results is None:
        options.results = _REPOSITORY / ".caret" / "gpu" / f"{options.shape}.json"
    return options


def _install(wheels: str, arguments: Sequence[str]) -> None:
    """Install the locked packages and run this program again with them. Raises Refusal."""
    find_gpu()  # before gigabytes are installed
    environment = os.environ | {"CARET_ENGINE": "gpu"}
    if wheels:
        folder = Path(wheels).resolve()
        if not any(folder.glob("*.whl")):
            raise Refusal(f"{folder} contains no wheels.")
        environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
    setup = [sys.executable, str(_REPOSITORY / "platform" / "scripts" / "setup")]
    status = subprocess.run(setup, env=environment, check=False).returncode
    if status:
        raise Refusal("The packages could not be installed; see above.", exit_code=status)
    python = str(_REPOSITORY / ".venv" / "bin" / "python")
    # Without --install, so that the program does not install the packages again.
    remaining = [word for word in arguments if word not in ("--install", wheels)]
    remaining = [word for word in remaining if not word.startswith("--install=")]
    os.execv(python, [python, "-m", "tests.gpu", *remaining])  # noqa: S606  # without a shell


def _run(options: argparse.Namespace) -> int:
    """Import the rest of the program and run it. Raises Refusal."""
    try:
        acceptance = importlib.import_module("tests.gpu.acceptance")
    except ModuleNotFoundError as error:
        raise Refusal(
            f"The package {error.name} is missing: --install installs the locked packages.",
            exit_code=MISSING_FEATURE,
        ) from None
    status: int = acceptance.run(options)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
