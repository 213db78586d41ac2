"""Usage reports: the time of their queries and the memory of exports, with a month of usage of 20
tenants.

The rows are those of `tests.benchmarks.synthetic_usage`. One client runs one query after the other:

    month      the usage report of a tenant for the month, from the rollups, with each grouping
    dashboard  the queries of the console's pages: the figures of the last day, the month by day and
               by language, its quality, its overview and its slowest requests
    export     one tenant's month as CSV, NDJSON and Parquet, by `manage.py export_usage`; `memory`
               is the maximum of the process

    python -m tests.benchmarks.report [--rows 5000000] [--tenants 20] [--requests 200]

To check only that the benchmark runs: `--rows 40000 --tenants 4 --requests 20`.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from pyarrow import parquet

from caret.local.caret_services import manage_command
from caret.local.paths import REPOSITORY
from tenants.compliance.exports.verification import PROOF_SUFFIX
from tests.benchmarks.control_plane import ControlPlane, control_plane
from tests.benchmarks.results import Report, percentile, spread
from tests.benchmarks.synthetic_usage import END, NOW, START, fill, roll_up_all

MAX_REPORT_S: Final = 2.0
MAX_DASHBOARD_MS: Final = 100.0
MAX_EXPORT_MB: Final = 200.0
_NUM_MONTH_TENANTS: Final = 5  # `month` is the slowest of their reports
_KB_IN_MB: Final = 1024


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.report")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--requests", type=int, default=200, help="number of dashboard queries")
    options = parser.parse_args(arguments)
    report = Report("report")
    with control_plane() as plane:
        tenants = plane.make_tenants(options.tenants)
        fill(plane, tenants, options.rows // options.tenants)
        _roll_up(report, tenants, options.rows)
        _measure_month(report, tenants, options.rows)
        _measure_dashboard(report, tenants, options.requests)
        for kind in ("csv", "ndjson", "parquet"):
            _measure_export(plane, report, kind, options.rows // options.tenants)
    return report.exit_status


def _roll_up(report: Report, tenants: Sequence[str], rows: int) -> None:
    took_s = roll_up_all(tenants)
    report.figure("roll_up", rows / took_s, "records/s", rows=rows, seconds=round(took_s, 1))


def _measure_month(report: Report, tenants: Sequence[str], rows: int) -> None:
    # Imported here, as in the functions below: `control_plane` sets Django up.
    from tenants.usage.reports.queries import GroupBy, ReportKind

    for group_by in (None, *GroupBy):
        took_s = max(
            _measure_s(_make_report_query(tenant, ReportKind.USAGE, group_by))
            for tenant in tenants[:_NUM_MONTH_TENANTS]
        )
        name = f"month.{group_by or 'total'}"
        report.target(name, took_s, "s", at_most=MAX_REPORT_S, rows=rows, tenants=len(tenants))


def _measure_dashboard(report: Report, tenants: Sequence[str], num_requests: int) -> None:
    from tenants.usage.reports.queries import GroupBy, ReportKind
    from tenants.usage.requests.queries import read_recent_usage

    def make_recent_query(tenant: str) -> Callable[[], object]:
        return lambda: read_recent_usage(actor=_actor(tenant), now=NOW)

    kinds: dict[str, Callable[[str], Callable[[], object]]] = {
        "recent": make_recent_query,
        "by_day": lambda tenant: _make_report_query(tenant, ReportKind.USAGE, GroupBy.DAY),
        "by_language": lambda tenant: _make_report_query(
            tenant, ReportKind.USAGE, GroupBy.LANGUAGE
        ),
        "quality": lambda tenant: _make_report_query(tenant, ReportKind.QUALITY, None),
        "overview": _make_overview_query,
        "slowest": _make_slowest_query,
    }
    for name, make_query in kinds.items():
        times = [
            _measure_s(make_query(tenant)) * 1000 for tenant in islice(cycle(tenants), num_requests)
        ]
        p95 = percentile(times, 95)
        report.target(f"dashboard.{name}.p95", p95, "ms", at_most=MAX_DASHBOARD_MS, **spread(times))


def _make_overview_query(tenant: str) -> Callable[[], object]:
    from tenants.usage.reports.overview import read_overview
    from tenants.usage.reports.queries import ReportQuery

    query = ReportQuery(START.date(), END.date())
    return lambda: read_overview(actor=_actor(tenant), query=query)


def _make_slowest_query(tenant: str) -> Callable[[], object]:
    from tenants.usage.requests.list_queries import RequestFilter, RequestSort, list_requests

    request_filter = RequestFilter(START, END, order=RequestSort.SLOW)
    return lambda: list_requests(
        actor=_actor(tenant), request_filter=request_filter, limit=50, cursor=None, now=NOW
    )


def _make_report_query(tenant: str, kind: object, group_by: object) -> Callable[[], object]:
    from tenants.usage.reports.queries import GroupBy, ReportKind, ReportQuery, read_report

    # The parameters have the type `object`, because their classes can be imported only here.
    assert isinstance(kind, ReportKind)
    assert group_by is None or isinstance(group_by, GroupBy)
    query = ReportQuery(START.date(), END.date(), group_by)
    return lambda: read_report(actor=_actor(tenant), kind=kind, query=query)


def _actor(tenant: str):  # type: ignore[no-untyped-def]  # Django is not set up yet
    from caret.foundation.ids import TenantId
    from tenants.security.authorization.actor import build_system_actor

    return build_system_actor(TenantId(tenant))


def _measure_export(plane: ControlPlane, report: Report, kind: str, rows: int) -> None:
    """Export a tenant's month in the file format `kind`, and report memory and rows."""
    out = Path(plane.home.paths.home / f"export.{kind}")
    command = manage_command(
        *("export_usage", "tenant-0", "--from", str(START.date()), "--to", str(END.date())),
        *("--format", kind, "--out", str(out)),
    )
    began_s = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=plane.home.environment, stdout=subprocess.DEVNULL
    )
    _, status, resource_use = os.wait4(process.pid, 0)
    took_s = time.perf_counter() - began_s
    if status:
        raise SystemExit(f"The export as {kind} failed.")
    about = {"rows": rows, "seconds": round(took_s, 1), "file_mb": out.stat().st_size // 10**6}
    report.target(
        f"export.{kind}.memory",
        resource_use.ru_maxrss / _KB_IN_MB,
        "MB",
        at_most=MAX_EXPORT_MB,
        **about,
    )
    num_rows = _num_rows(out, kind)
    report.judged(
        f"export.{kind}.rows", num_rows, "rows", passed=num_rows == rows, target=f"{rows}"
    )
    out.unlink()
    out.with_name(out.name + PROOF_SUFFIX).unlink()


def _num_rows(path: Path, kind: str) -> int:
    if kind == "parquet":
        return int(parquet.read_metadata(path).num_rows)
    with path.open("rb") as file:
        return sum(1 for _ in file) - (kind == "csv")  # without the header


def _measure_s(query: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    query()
    return time.perf_counter() - began_s


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
