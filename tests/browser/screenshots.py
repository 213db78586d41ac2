"""Pictures of every page, for a look: `python -m tests.browser.screenshots FOLDER [--only NAME]`.

Postgres, Valkey and a console of its own, with the demonstration's past; each page as it is for
whom all of it is shown, at the width of a desk and of a phone, light and dark. FOLDER/index.html
shows them all.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django

from caret.local.paths import EmbeddedPaths
from tests.stack.home import make_home


def main() -> None:
    options = _options()
    with _home() as paths:
        django.setup()
        from tests.browser.screenshot_server import hang, opened  # Django has been set up

        with opened(paths, num_days=options.days) as gallery:
            names = hang(gallery, options.folder, only=options.only)
    sys.stdout.write(f"{len(names)} pages: {options.folder / 'index.html'}\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Takes pictures of every page of the console.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="pages whose name has this in it")
    parser.add_argument("--days", type=int, default=92, help="length of the made-up past")
    return parser.parse_args()


@contextmanager
def _home() -> Iterator[EmbeddedPaths]:
    paths = make_home()
    try:
        yield paths
    finally:
        for folder in (paths.home, paths.sockets):
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
