"""The subcommands of `manage.py tenant` that close a tenant."""

import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from django.core.management.base import CommandError

from tenants.base.errors import NotFound
from tenants.compliance.tenant_closing import (
    TenantClosure,
    begin_closing,
    close_now,
    find_closure,
    read_final_export,
)
from tenants.fleet.operators.operations import require_tenant_reason
from tenants.management.tenant_arguments import Handler, add_tenant_parser
from tenants.security.authorization.actor import Actor


def add_closing_parsers(commands: Any) -> None:
    close = add_tenant_parser(
        commands, "close", "request the final export, and delete the data after a grace period"
    )
    close.add_argument("--grace-days", type=int, help="default: CARET_CLOSING_GRACE_DAYS")
    at_once = add_tenant_parser(
        commands, "close-now", "close it at once, and delete its data; cannot be undone"
    )
    at_once.add_argument("--confirm", required=True, metavar="SLUG", help="the slug again")
    progress = commands.add_parser("closing", help="show the progress of the closing")
    progress.add_argument("slug")
    progress.add_argument("--export", metavar="FILE", help="write the final export to a file")
    progress.add_argument("--certificate", metavar="FILE", help="write the deletion certificate")


def _begin_closing(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    reason = require_tenant_reason(options["reason"])
    days = options["grace_days"]
    closes_at = begin_closing(actor=actor, reason=reason, now=now, grace_days=days)
    return (
        f"{slug} is closing. Its data is deleted on {closes_at:%Y-%m-%d %H:%M} UTC. "
        f"Until then, `tenant resume {slug}` or `tenant suspend {slug}` cancels this."
    )


def _close_now(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    if options["confirm"] != slug:
        raise CommandError("Nothing was closed: --confirm must repeat the tenant's slug.")
    close_now(actor=actor, reason=require_tenant_reason(options["reason"]), now=now)
    return f"{slug} is closed. The worker deletes its data within minutes."


def _show_closing(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    """Describe the closing, and write the files that the options name.

    Raises DomainError, CommandError.
    """
    closure = find_closure(tenant_id=actor.tenant_id)
    lines = _describe_closure(slug, closure)
    if options["export"]:
        _write_file(Path(options["export"]), read_final_export(actor=actor, now=now))
        lines.append(f"Wrote the final export to {options['export']}.")
    if options["certificate"]:
        if closure.certificate is None:
            raise NotFound("The data is not deleted yet, so there is no certificate.")
        _write_file(Path(options["certificate"]), [closure.certificate.encode()])
        lines.append(f"Wrote the deletion certificate to {options['certificate']}.")
    return "\n".join(lines)


def _write_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Write the file under a temporary name, and rename it at the end. Raises CommandError.

    Only the owner of the file can read it. After an error, the temporary file is deleted.
    """
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                file.writelines(pieces)
                file.close()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise
    except OSError as error:
        raise CommandError(f"Cannot write {path}: {error.strerror}.") from error


def _describe_closure(slug: str, closure: TenantClosure) -> list[str]:
    if closure.erased_at is not None:
        return [f"The data of {slug} was deleted on {closure.erased_at:%Y-%m-%d %H:%M} UTC."]
    if closure.is_erasing:
        return [f"The data of {slug} is being deleted."]
    if closure.closes_at is None:
        return [f"{slug} is not closing."]
    export = "none" if closure.final_export is None else closure.final_export.state.value
    return [
        f"The data of {slug} is deleted on {closure.closes_at:%Y-%m-%d %H:%M} UTC.",
        f"Final export: {export}.",
    ]


CLOSING_HANDLERS: Final = MappingProxyType[str, Handler](
    {"close": _begin_closing, "close-now": _close_now, "closing": _show_closing}
)
