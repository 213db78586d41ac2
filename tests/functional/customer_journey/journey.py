"""The journey of a new customer. Each step has a time and a picture."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from playwright.sync_api import Page

from caret.local.paths import REPOSITORY

PICTURES: Final = Path(
    os.environ.get("CARET_TEST_PICTURES") or REPOSITORY / ".caret" / "pictures" / "customer"
)
_NOT_IN_NAME: Final = re.compile(r"\W+")
# Issues the month's invoice as the worker does after the month's end. No clock can be set forward
# for one installation, so the operation gets the time as an argument.
_ISSUE_INVOICE: Final = """
import sys, django
django.setup()
from datetime import timedelta
from django.utils import timezone
from tenants.base.billing_periods import (
    start_of_day, start_of_month, start_of_next_month, utc_day
)
from tenants.billing.invoices.operations import GRACE, issue_due_invoices
from tenants.security.authorization.directory import find_tenant
next_month = start_of_next_month(start_of_month(utc_day(timezone.now())))
after_grace = start_of_day(next_month) + GRACE + timedelta(minutes=1)
print(*issue_due_invoices(find_tenant(slug=sys.argv[1]), now=after_grace))
"""


@dataclass
class Journey:
    """Times the steps, and takes a picture at the end of each step."""

    folder: Path = PICTURES
    steps: list[tuple[str, float]] = field(default_factory=list)  # titles and seconds

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("*.png"):
            old.unlink()

    @contextmanager
    def step(self, title: str, page: Page) -> Iterator[None]:
        began_s = time.monotonic()
        try:
            yield
        finally:
            self.steps.append((title, time.monotonic() - began_s))
            name = _NOT_IN_NAME.sub("-", title.lower()).strip("-")
            file = self.folder / f"{len(self.steps):02}-{name}.png"
            _take_picture(page, file)

    @property
    def report(self) -> str:
        lines = [
            f"{number:>3}  {seconds:6.1f} s  {title}"
            for number, (title, seconds) in enumerate(self.steps, start=1)
        ]
        total_s = sum(seconds for _, seconds in self.steps)
        lines.append(f"{len(self.steps)} steps in {total_s:.1f} s; pictures: {self.folder}")
        return "\n".join(lines)


def _take_picture(page: Page, file: Path) -> None:
    """Take a picture of the whole page, in a window of its height."""
    window = page.viewport_size
    assert window is not None
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": window["width"], "height": max(window["height"], height)})
    page.screenshot(path=file)
    page.set_viewport_size(window)


def issue_invoice_after_the_month(slug: str, environment: dict[str, str]) -> str:
    """Issue the current month's invoice, the tenant's only one, and return its number."""
    process = subprocess.run(
        [sys.executable, "-c", _ISSUE_INVOICE, slug],
        cwd=REPOSITORY,
        env=environment
        | {"DJANGO_SETTINGS_MODULE": "caret.settings", "PYTHONPATH": "platform:platform/ide:."},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    (number,) = process.stdout.splitlines()[-1].split()  # after lines of the log
    return number
