"""Screenshots of every page.

    python -m tests.browser.screenshots FOLDER [--only NAME] [--days 92]

Starts Postgres, Valkey and a console with demonstration data. Each page is shown to a user who may
see all of it, at the width of a desktop and of a phone, light and dark. FOLDER/index.html
shows all screenshots.
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
        from tests.browser.screenshot_server import (  # imported after Django is set up
            running_gallery,
            take_screenshots,
        )

        with running_gallery(paths, num_days=options.days) as gallery:
            names = take_screenshots(gallery, options.folder, only=options.only)
    sys.stdout.write(f"{len(names)} pages: {options.folder / 'index.html'}\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Take screenshots of every page of the console.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="only pages whose name contains this")
    parser.add_argument("--days", type=int, default=92, help="number of days of sample history")
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
