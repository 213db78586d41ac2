"""For `make dev`: detects saved files, and finds the services that run them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from caret.local.processes.signals import ShutdownRequested

CONSOLE, GATEWAY, WORKER, BEAT = "Console", "Gateway", "Worker", "Beat"
# Services by path prefix. Templates and static files need no entry: the console reloads them.
_SERVICES: Final = {
    "inference/": {GATEWAY},
    "tenants/": {CONSOLE, WORKER},
    "console/": {CONSOLE},
    "platform/caret/contracts/": {CONSOLE, GATEWAY, WORKER},
    "platform/caret/foundation/": {CONSOLE, GATEWAY, WORKER, BEAT},
    "platform/caret/composition/": {GATEWAY},
    "platform/caret/gateway_server.py": {GATEWAY},
    "platform/caret/capacity/": {CONSOLE},
    "platform/caret/management/": {CONSOLE},
    "platform/caret/asgi.py": {CONSOLE},
    "platform/caret/urls.py": {CONSOLE},
    "platform/caret/settings/": {CONSOLE, WORKER, BEAT},
    "platform/caret/celery.py": {WORKER, BEAT},
}
_ROOTS: Final = ("inference", "tenants", "console", "platform/caret")
_SUFFIXES: Final = (".py", ".mo")  # code and compiled translations
_POLL_MS: Final = 1  # longest wait of a check for changes
_SETTLE_MS: Final = 50  # an editor may write a file in several steps


def find_affected_services(file: str) -> set[str]:
    """Return the names of the services that run `file`, a path relative to the repository."""
    if not file.endswith(_SUFFIXES):
        return set()
    return {name for start, names in _SERVICES.items() if file.startswith(start) for name in names}


def watch_changed_files(repository: Path) -> Iterator[set[str]]:
    """Yield at each step the files that were saved since the previous step; usually none.

    Paths are relative to the repository. Raises ShutdownRequested if a signal arrives: watchfiles
    replaces the exception of our signal handler with KeyboardInterrupt.
    """
    from watchfiles import watch  # only installed for development

    try:
        for changes in watch(
            *(repository / root for root in _ROOTS),
            step=_SETTLE_MS,
            rust_timeout=_POLL_MS,
            yield_on_timeout=True,
        ):
            yield {str(Path(path).relative_to(repository)) for _, path in changes}
    except KeyboardInterrupt:
        raise ShutdownRequested from None
