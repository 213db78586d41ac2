"""Plants each fault of the catalogue in a scratch copy, and says which test catches it.

    python -m tests.faults [--suite default|deep] [--only PATTERN ...] [--results FILE [--resume]]
    python -m tests.faults --list

PATTERN matches ids, areas or files, as in a shell: 'money', 'keys-*', 'tenants/billing/*'. All
tests run first without a fault; a fault whose tests fail on their own has no verdict.
Commit first: the copy has the tracked files as they are in the working tree.
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from tests.faults.fault import REPOSITORY, SUITES, BadFault, Fault, read_catalogue
from tests.faults.results import BASELINE, FAULT, Result, Results, summary
from tests.faults.scratch import Scratch, scratch_copy
from tests.faults.trial import NoVerdict, try_files, try_tests

_BASELINE_LIMIT_S: Final = 600.0  # for each file
# A faulty tree may take this much longer than a sound one before it counts as a hang.
_SLACK_S: Final = 60.0
_SLACK_FACTOR: Final = 3


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    # A run that is ended removes its copy and ends its pytest.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        faults = [
            fault for fault in read_catalogue() if _is_chosen(fault, options.suite, options.only)
        ]
        if options.list:
            _print_list(faults)
            return 0
        results = Results(options.results, resume=options.resume)
        with scratch_copy(REPOSITORY) as scratch:
            _run_without_fault(scratch, faults, results)
            tried = [_try_fault(scratch, fault, results) for fault in faults]
    except (BadFault, NoVerdict) as error:
        print(error, file=sys.stderr)
        return 2
    verdicts = [result for result in tried if result is not None]
    print(json.dumps(summary(verdicts), indent=1))
    return 1 if len(verdicts) < len(faults) or any(not one.caught_by for one in verdicts) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--suite", choices=SUITES, default="default")
    parser.add_argument("--only", nargs="+", metavar="PATTERN", default=["*"])
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="skip what the results file has")
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    return parser.parse_args(arguments)


def _is_chosen(fault: Fault, suite: str, patterns: Iterable[str]) -> bool:
    names = (fault.id, fault.area, fault.file)
    return (suite == "deep" or fault.suite == "default") and any(
        fnmatch(name, pattern) for pattern in patterns for name in names
    )


def _try_fault(scratch: Scratch, fault: Fault, results: Results) -> Result | None:
    """Plant a fault and run its tests. Return None where the tests say nothing."""
    if known := results.find(FAULT, fault.id):
        return known
    try:
        sound_s = sum(_baseline_s(name, results) for name in fault.test_files)
        with scratch.planted(fault):
            limit_s = _SLACK_S + _SLACK_FACTOR * sound_s
            verdict = try_tests(scratch, fault.tests, limit_s=limit_s)
    except NoVerdict as error:
        print(f"no verdict  {fault.id}: {error}", flush=True)
        return None
    result = results.add_fault(fault, verdict)
    said = f"caught by {result.caught_by}" if result.caught_by else f"MISSED: {fault.breaks}"
    print(f"{result.seconds:6.1f} s  {fault.area:11}  {fault.id}: {said}", flush=True)
    return result


def _run_without_fault(scratch: Scratch, faults: Iterable[Fault], results: Results) -> None:
    """Learn which files of tests pass, and how long each takes. Raises NoVerdict."""
    untried = [fault for fault in faults if not results.find(FAULT, fault.id)]
    names = dict.fromkeys(name for fault in untried for name in fault.test_files)
    files = [name for name in names if not results.find(BASELINE, name)]
    if not files:
        return
    print(f"{len(files)} files of tests run without a fault.", flush=True)
    verdicts = try_files(scratch, files, limit_s=_BASELINE_LIMIT_S * len(files))
    for name, verdict in verdicts.items():
        results.add_baseline(name, verdict)


def _baseline_s(file: str, results: Results) -> float:
    """Return how long a file of tests takes without a fault. Raises NoVerdict when it fails."""
    known = results.find(BASELINE, file)
    assert known is not None
    if known.caught_by is not None:
        raise NoVerdict(f"{file} fails without a fault: {known.caught_by}")
    return known.seconds


def _print_list(faults: Iterable[Fault]) -> None:
    for fault in faults:
        print(f"{fault.area:11}  {fault.id}  {fault.file}  ({' '.join(fault.tests)})")


if __name__ == "__main__":
    sys.exit(main())
