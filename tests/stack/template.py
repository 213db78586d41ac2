"""Make a home with a migrated database, which test sessions copy.

python -m tests.stack.template FOLDER
"""

import shutil
import sys

import django
from django.db import connections

from tests.stack.home import make_home


def main() -> None:
    paths = make_home()
    django.setup()
    from tests.stack.services import migrate, running_services

    try:
        with running_services(paths):
            migrate(paths)
            connections.close_all()
        shutil.copytree(paths.home, sys.argv[1])
    finally:
        for folder in (paths.home, paths.sockets):
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
