#!/usr/bin/env python
"""Caret's command line: `python manage.py help` lists the commands."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "platform"))

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "caret.settings")
    from caret.cli import run

    sys.exit(run(sys.argv))
