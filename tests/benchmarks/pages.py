"""Pages: what the server takes for each of the console's, where the database is large.

Usage of many tenants, as `tests.benchmarks.synthetic_usage` has it; the first of them has people,
and
one thing of each kind that pages show. Its owner asks for each page in turn, by Django's client in
this process: middleware, queries and templates, no network. Pages that are about a time are asked
for about a month, too (`usage.month`).

    python -m tests.benchmarks.pages [--rows 5000000] [--tenants 20] [--asks 40] [--only usage]

A smoke test: `--rows 500000 --tenants 2 --asks 10`.
"""

import argparse
import sys
from collections.abc import Sequence

from tests.benchmarks.control_plane import control_plane
from tests.benchmarks.results import Report
from tests.benchmarks.synthetic_usage import fill, roll_up_all


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.pages")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--asks", type=int, default=40, help="of each page")
    parser.add_argument("--only", default="", help="pages whose name has this in it")
    options = parser.parse_args(arguments)
    report = Report("pages")
    with control_plane() as plane:
        from tests.benchmarks.page_workload import make_asked, measure  # Django has been set up

        asked = make_asked()
        tenants = [asked.tenant_id, *plane.make_tenants(options.tenants - 1)]
        fill(plane, tenants, options.rows // options.tenants)
        roll_up_all(tenants)
        measure(report, asked, asks=options.asks, only=options.only)
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
