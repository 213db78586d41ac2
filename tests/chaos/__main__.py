"""Inject faults under load, one after the other, and print one line of results (JSON) for each.

    python -m tests.chaos [--only NAME ...] [--seconds N] [--rate 100]
    python -m tests.chaos --list
    python -m tests.chaos --soak MINUTES [--rate 200]         no fault: do processes grow?
    python -m tests.chaos --regions [--seconds 3600] [--rate 20]    gateways in another region

Needs root (network namespaces, mounts), iproute2 and /dev/net/tun. platform/docs/fault-injection.md
explains the results.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Final

from tests.benchmarks.results import Report
from tests.chaos import (
    clock_skew,
    data_loss,
    disks,
    engines,
    network_faults,
    noisy_neighbour,
    process_kills,
    regions,
)
from tests.chaos.environment import world
from tests.chaos.load import MIN_QUIET_RATE, clients
from tests.chaos.run import Run
from tests.chaos.scenario import Family, Scenario
from tests.chaos.soak import soak

_RATE: Final = 100.0
_SOAK_RATE: Final = 200.0
_REGIONS_RATE: Final = 20.0
_FAMILIES: Final = (
    process_kills,
    network_faults,
    engines,
    noisy_neighbour,
    clock_skew,
    disks,
    data_loss,
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="globs: kill-*")
    parser.add_argument(
        "--seconds",
        type=float,
        help="duration of each fault that does not end at once; default: the fault's own",
    )
    parser.add_argument("--soak", type=float, metavar="MINUTES")
    parser.add_argument(
        "--regions", action="store_true", help="faults of the link between two regions"
    )
    parser.add_argument(
        "--rate",
        type=float,
        help="requests a second; default: 100, with --soak 200, with --regions 20",
    )
    parser.add_argument("--list", action="store_true", help="list the faults")
    options = parser.parse_args(arguments)
    if options.rate is not None and options.rate <= MIN_QUIET_RATE:
        parser.error(f"--rate must be above {MIN_QUIET_RATE:g}, the rate of the quiet tenant")
    families = (regions,) if options.regions else _FAMILIES
    chosen_scenarios = _choose_scenarios(families, options.only or ["*"])
    if options.list:
        sys.stdout.writelines(f"{scenario.name}\n" for scenario in chosen_scenarios)
        return 0
    # End as with Ctrl-C, so that disks and hosts are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    report = Report("chaos")
    region = regions.FarRegion() if options.regions else None
    rate = _default_rate(options) if options.rate is None else options.rate
    with world(region=region) as chaos_world, clients(chaos_world, rate=rate) as clients_process:
        if options.soak is not None:
            soak(chaos_world, report, minutes=options.soak)
        else:
            run = Run(chaos_world, clients_process, report, hold_s=options.seconds)
            run.run_all(chosen_scenarios)
            run.check_at_rest()
    return report.exit_status


def _default_rate(options: argparse.Namespace) -> float:
    if options.soak is not None:
        return _SOAK_RATE
    return _REGIONS_RATE if options.regions else _RATE


def _choose_scenarios(families: Sequence[Family], globs: Sequence[str]) -> list[Scenario]:
    """Return the scenarios that match a glob.

    Raises SystemExit if there is none.
    """
    scenarios = [scenario for family in families for scenario in family.scenarios()]
    chosen_scenarios = [
        scenario for scenario in scenarios if any(fnmatch(scenario.name, glob) for glob in globs)
    ]
    if not chosen_scenarios:
        raise SystemExit(f"There is no such fault: {', '.join(globs)}. `--list` lists them.")
    return chosen_scenarios


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
