"""`manage.py create_demo_tenants --state FILE` creates demonstration tenants and an operator.

See tenants.demo.tenants.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.demo.tenants import ensure_demonstration, read_state, write_state


class Command(NoSystemChecksCommand):
    help = "Create missing demonstration tenants and their operator; print credentials as JSON."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--state", type=Path, required=True, help="file that stores their secrets"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        state = ensure_demonstration(last_run=read_state(options["state"]), now=timezone.now())
        write_state(options["state"], state)
        self.stdout.write(json.dumps(state))
