"""The demonstration tenants, which `manage.py create_demo_tenants` creates once."""

import json
from collections.abc import Callable, Mapping

from caret.local.caret_services import manage, run_to_end
from caret.local.errors import PartFailed
from caret.local.paths import EmbeddedPaths
from caret.local.state_file import TenantEntry


def ensure_demo_tenants(
    paths: EmbeddedPaths, *, environment: Mapping[str, str], on_wait: Callable[[], None]
) -> list[TenantEntry]:
    """Return the demonstration tenants; the same ones at each start.

    Raises PartFailed.
    """
    log_file = paths.logs / "demo-tenants.log"
    output = run_to_end(
        "The command that makes the demonstration tenants",
        manage("create_demo_tenants", "--state", str(paths.secrets / "demo.json")),
        log_file=log_file,
        environment=environment,
        on_wait=on_wait,
    )
    try:
        tenants: list[TenantEntry] = json.loads(output)
    except json.JSONDecodeError as error:
        # Never include the output itself: it contains passwords.
        raise PartFailed(
            f"`manage.py create_demo_tenants` did not print JSON. Its log: {log_file}"
        ) from error
    return tenants
