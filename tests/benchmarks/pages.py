"""Console pages: the time that the server takes for each page, with a large database.

The database has the usage of many tenants, made by `tests.benchmarks.synthetic_usage`. The first
tenant has users, and one object of each kind that pages show. Its owner requests one page after the
other, through Django's test client in this process. This includes middleware, queries and
templates, but no network. Pages that show a period are also requested for a month (`usage.month`).

    python -m tests.benchmarks.pages [--rows 5000000] [--tenants 20] [--requests 40] [--only usage]

To check only that the benchmark runs: `--rows 500000 --tenants 2 --requests 10`.
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
    parser.add_argument("--requests", type=int, default=40, help="number of requests for each page")
    parser.add_argument("--only", default="", help="only pages whose name contains this")
    options = parser.parse_args(arguments)
    report = Report("pages")
    with control_plane() as plane:
        # imported after Django is set up
        from tests.benchmarks.page_workload import make_workload, measure

        workload = make_workload()
        tenants = [workload.tenant_id, *plane.make_tenants(options.tenants - 1)]
        fill(plane, tenants, options.rows // options.tenants)
        roll_up_all(tenants)
        measure(report, workload, num_requests=options.requests, only=options.only)
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
