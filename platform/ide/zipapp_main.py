"""Starts `caret-ls` from its zipapp. An older Python can read this file, too."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # the user's Python may be older
    version = ".".join(str(number) for number in sys.version_info[:3])
    sys.exit(f"caret-ls needs Python 3.11 or newer; {sys.executable} is Python {version}.")

from caret_ls.__main__ import main

sys.exit(main())
