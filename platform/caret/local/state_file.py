"""`up.json`: the URLs and credentials of the running installation, for clients and tests.

The file has mode 0600, because it contains passwords.
"""

import json
import os
from pathlib import Path
from typing import TypedDict


class StatePoolEntry(TypedDict):
    name: str
    tier: str
    url: str
    pid: int | None  # None: this supervisor did not start the engine


class TenantEntry(TypedDict):
    slug: str
    owner_email: str
    owner_password: str
    admin_email: str
    admin_password: str
    developer_email: str
    developer_password: str
    api_key: str


class OperatorEntry(TypedDict):
    url: str  # of the operator pages
    handle: str
    password: str
    totp_uri: str  # otpauth://..., for an authenticator app


class RunningInstallation(TypedDict):
    console_url: str
    gateway_url: str
    pools: list[StatePoolEntry]
    tenants: list[TenantEntry]
    operator: OperatorEntry | None  # None: no operator pages, or the account is disabled
    supervisor_pid: int


def write_up_file(file: Path, entry: RunningInstallation) -> None:
    """Write the file atomically."""
    draft = file.with_name(file.name + ".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(entry, stream, indent=2)
        stream.write("\n")
    draft.replace(file)


def read_up_file(file: Path) -> RunningInstallation | None:
    """Read the file; return None if it is missing.

    The file remains if the supervisor was killed. It then describes an installation that no longer
    runs.
    """
    try:
        entry: RunningInstallation = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    return entry
