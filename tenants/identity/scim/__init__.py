"""SCIM 2.0 (RFC 7643, 7644): users and groups provisioned by identity providers."""

import inspect
from pathlib import Path

# For the descriptions of a class's fields, pydantic asks `inspect` for the module of each frame of
# the call stack. For a frame of the import system, `inspect` searches all modules each time, unless
# it finds the file in this table.
for _name in ("importlib._bootstrap", "importlib._bootstrap_external"):
    inspect.modulesbyfile[str(Path(f"<frozen {_name}>").absolute())] = _name
