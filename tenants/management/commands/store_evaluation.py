"""Store a report of `manage.py evaluate` for the operators' page Evaluations.

manage.py evaluate --pool fast --repository ~/src/shop > report.json
manage.py store_evaluation report.json --title "Qwen 7B on shop"
manage.py evaluate --pool fast --repository ~/src/shop | manage.py store_evaluation -
"""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.fleet.evaluations import MAX_REPORT_BYTES, store_evaluation

_STANDARD_INPUT: Final = "-"


class Command(NoSystemChecksCommand):
    help = "Store a report of manage.py evaluate, which operators read in the console."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("report", metavar="FILE", help="the JSON report; -: standard input")
        parser.add_argument("--title", help="default: the pools of the report")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            evaluation = store_evaluation(
                report=_read_report(options["report"]), title=options["title"], now=timezone.now()
            )
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"Stored as {evaluation.title!r} ({evaluation.id}).")


def _read_report(name: str) -> bytes:
    """Return the report. Raises CommandError.

    If the report is too large, return its first MAX_REPORT_BYTES + 1 bytes, which store_evaluation
    rejects.
    """
    try:
        if name == _STANDARD_INPUT:
            return sys.stdin.buffer.read(MAX_REPORT_BYTES + 1)
        with Path(name).open("rb") as file:
            return file.read(MAX_REPORT_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.") from error
