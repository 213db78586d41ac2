"""Plant each fault of the catalogue in a scratch copy and report which test catches it.

    python -m tests.faults [--suite default|deep] [--only PATTERN ...] [--jobs N]
                           [--results FILE [--resume]]
    python -m tests.faults --list
    python -m tests.faults --summary FILE

PATTERN matches ids, areas or files, as in a shell: 'money', 'keys-*', 'tenants/billing/*'. At the
end, the tests that caught a fault run again without the fault: a test that also fails then proves
nothing. The scratch copy contains the tracked files of the working tree, so add new files to Git
first.
"""

import argparse
import datetime
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeVar

from tests.faults.fault import REPOSITORY, SUITES, BadFault, Fault, read_catalogue
from tests.faults.results import FAULT, Results, summary
from tests.faults.scratch import Scratch, home_template, scratch_copy
from tests.faults.trial import NoVerdict, Verdict, end_trials, find_failing_tests, try_tests

# Exceeding a limit counts as a caught fault, so the limits leave time for a busy machine.
_UNIT_LIMIT_S: Final = 240.0  # for tests that start no services
_STACK_LIMIT_S: Final = 480.0  # for tests that start services
_CONFIRMATION_LIMIT_S: Final = 1800.0
_TESTS_PER_CONFIRMATION: Final = 30
# A fault in one of these files needs a new database: the template's was made without the fault.
_FILES_THAT_MAKE_DATABASE: Final = ("*/migrations/*", "platform/caret/foundation/postgres/*")

Item = TypeVar("Item")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    # So that an interrupted run removes its copies and ends its tests.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        faults = [
            fault for fault in read_catalogue() if _is_chosen(fault, options.suite, options.only)
        ]
        if options.list:
            _print_list(faults)
            return 0
        if options.summary:
            _print_report(faults, Results(options.summary, resume=True), options.suite)
            return 0
        results = Results(options.results, resume=options.resume)
        _try_all(faults, results, jobs=options.jobs)
    except BadFault as error:
        print(error, file=sys.stderr)
        return 2
    print(summary(faults, results))
    return 0 if all(results.is_caught(fault) for fault in faults) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--suite", choices=SUITES, default="default")
    parser.add_argument("--only", nargs="+", metavar="PATTERN", default=["*"])
    parser.add_argument("--jobs", type=int, metavar="N", default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument(
        "--resume", action="store_true", help="skip faults that FILE lists as caught"
    )
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="print a summary of FILE")
    return parser.parse_args(arguments)


def _is_chosen(fault: Fault, suite: str, patterns: Iterable[str]) -> bool:
    names = (fault.id, fault.area, fault.file)
    return (suite == "deep" or fault.suite == "default") and any(
        fnmatch(name, pattern) for pattern in patterns for name in names
    )


def _try_all(faults: Sequence[Fault], results: Results, *, jobs: int) -> None:
    remaining = [fault for fault in faults if not results.is_caught(fault)]
    with ExitStack() as stack:
        copies = min(jobs, max(len(remaining), 1))
        scratches = [stack.enter_context(scratch_copy(REPOSITORY)) for _ in range(copies)]
        if any(fault.needs_services for fault in remaining):
            template = stack.enter_context(home_template(scratches[0]))
            scratches = [scratch.with_template(template) for scratch in scratches]
        _run_in_parallel(
            lambda scratch, fault: _try_fault(scratch, fault, results), remaining, scratches
        )
        tests = results.unconfirmed(faults)
        batches = [
            tests[start : start + _TESTS_PER_CONFIRMATION]
            for start in range(0, len(tests), _TESTS_PER_CONFIRMATION)
        ]
        _run_in_parallel(
            lambda scratch, tests: _confirm(scratch, tests, results), batches, scratches
        )


def _run_in_parallel(
    work: Callable[[Scratch, Item], None], items: Sequence[Item], scratches: Sequence[Scratch]
) -> None:
    """Do `work` on each item; each scratch copy handles one item at a time."""
    free: SimpleQueue[Scratch] = SimpleQueue()
    for scratch in scratches:
        free.put(scratch)

    def run_one(item: Item) -> None:
        scratch = free.get()
        try:
            work(scratch, item)
        finally:
            free.put(scratch)

    with ThreadPoolExecutor(len(scratches)) as pool:
        try:
            list(pool.map(run_one, items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            end_trials()
            raise


def _try_fault(scratch: Scratch, fault: Fault, results: Results) -> None:
    try:
        verdict = _verdict_on(scratch, fault)
    except NoVerdict as error:
        print(f"no verdict  {fault.id}: {error}", flush=True)
        return
    result = results.add_fault(fault, verdict)
    outcome = f"caught by {result.caught_by}" if result.caught_by else f"MISSED: {fault.breaks}"
    print(f"{result.seconds:6.1f} s  {fault.area:11}  {fault.id}: {outcome}", flush=True)


def _verdict_on(scratch: Scratch, fault: Fault) -> Verdict:
    """Try the fault's tests.

    Raises BadFault, NoVerdict.
    """
    limit_s = _STACK_LIMIT_S if fault.needs_services else _UNIT_LIMIT_S
    if any(fnmatch(fault.file, pattern) for pattern in _FILES_THAT_MAKE_DATABASE):
        scratch = scratch.with_template(None)
    with scratch.planted(fault):
        verdict = try_tests(scratch, fault.pytest_arguments, limit_s=limit_s)
        if verdict.caught_by is None and fault.needs_services and scratch.template:
            # The template's database was made by correct code, but the fault may be in that code.
            fresh = try_tests(scratch.with_template(None), fault.pytest_arguments, limit_s=limit_s)
            verdict = Verdict(fresh.caught_by, verdict.seconds + fresh.seconds, fresh.is_timeout)
    # Here the fault is removed again.
    if verdict.is_timeout and try_tests(scratch, fault.pytest_arguments, limit_s=limit_s).caught_by:
        raise NoVerdict("its tests exceed the time limit, and also fail without the fault")
    return verdict


def _confirm(scratch: Scratch, tests: Sequence[str], results: Results) -> None:
    try:
        failing = find_failing_tests(scratch, tests, limit_s=_CONFIRMATION_LIMIT_S)
    except NoVerdict as error:
        print(f"no confirmation of {' '.join(tests)}: {error}", flush=True)
        return
    for test in tests:
        results.add_confirmation(test, fails=test in failing)
    for test in sorted(failing):
        print(f"fails without a fault: {test}", flush=True)


def _print_list(faults: Iterable[Fault]) -> None:
    for fault in faults:
        print(f"{fault.area:11}  {fault.id}  {fault.file}  ({' '.join(fault.tests)})")


def _print_report(faults: Sequence[Fault], results: Results, suite: str) -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    date = datetime.datetime.now(datetime.UTC).date()
    times = [result.seconds for fault in faults if (result := results.find(FAULT, fault.id))]
    print("# Results of the planted faults\n")
    print("A planted fault is a small change that breaks the code on purpose. Faults are planted")
    print("one at a time, and a fault is caught if a test fails.\n")
    print(f"{date}, commit {commit}, suite `{suite}`: {sum(times) / 60:.0f} minutes on one core.\n")
    print(summary(faults, results))


if __name__ == "__main__":
    sys.exit(main())
