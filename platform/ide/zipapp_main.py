"""Starts `caret-ls` from its zipapp.

This file uses only old syntax, so that Python 3.6 to 3.10 can also show the error message.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # the user's Python may be older
    version = ".".join(str(number) for number in sys.version_info[:3])
    sys.exit(f"caret-ls needs Python 3.11 or newer; {sys.executable} is Python {version}.")

from caret_ls.__main__ import main

sys.exit(main())
