"""The share of the filter's cases whose expected text is shown, and the CPU time of the filter.

The cases are those of `tests/unit/inference/filter_cases`. Standard error lists the shares by
language and by kind of case, and each case in which another text is shown. `more_broken` counts the
cases whose file has more syntax errors or unmatched brackets with the shown text than without text,
and also more than with the expected text.

    python -m tests.benchmarks.filter_cases [--folder FOLDER] [--rounds 3]
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.benchmarks.results import Report, median, say, windows
from tests.unit.inference.filter_case_files import FilterCase, read_cases
from tests.unit.inference.filter_case_results import get_shown_text, is_more_broken

MIN_SHARE = 0.95


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.filter_cases")
    parser.add_argument("--folder", type=Path, help="other cases in the same format")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    cases = read_cases() if options.folder is None else read_cases(options.folder)
    report = Report("filter_cases")
    asyncio.run(_measure(cases, options.rounds, report))
    return report.exit_status


async def _measure(cases: Sequence[FilterCase], num_rounds: int, report: Report) -> None:
    shown_texts = {case.name: await get_shown_text(case) for case in cases}
    wrong_cases = [case for case in cases if shown_texts[case.name] != case.expected]
    broken_cases = [case for case in cases if is_more_broken(case, shown_texts[case.name])]
    for case in wrong_cases:
        say(f"{case.name}\n  expected {case.expected!r}\n  shown    {shown_texts[case.name]!r}")
    _say_shares(
        "language", [case.language for case in cases], [case.language for case in wrong_cases]
    )
    _say_shares("kind", [case.kind for case in cases], [case.kind for case in wrong_cases])
    share = 1 - len(wrong_cases) / len(cases)
    report.judged(
        "expected_text",
        share,
        "share",
        passed=share >= MIN_SHARE,
        target=f"at least {MIN_SHARE}",
        n=len(cases),
    )
    report.target("more_broken", len(broken_cases), "cases", at_most=0)
    cpu_ms = [await _measure_cpu_ms(cases) for _ in range(num_rounds)]
    report.figure("cpu", median(cpu_ms), "ms a completion", windows=windows(cpu_ms))


def _say_shares(property_name: str, values: Iterable[str], wrong_values: Iterable[str]) -> None:
    """Print the share of right cases for each value of a property (language or kind).

    `values` are those of all cases, `wrong_values` those of the wrong cases.
    """
    num_wrong = Counter(wrong_values)
    for value, count in sorted(Counter(values).items()):
        say(f"{property_name} {value}: {count - num_wrong[value]} of {count}")


async def _measure_cpu_ms(cases: Sequence[FilterCase]) -> float:
    began_s = time.process_time()
    for case in cases:
        await get_shown_text(case)
    return (time.process_time() - began_s) * 1_000 / len(cases)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
