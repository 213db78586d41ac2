"""SCIM 2.0 (RFC 7643, 7644): users and groups provisioned by identity providers."""

from importlib import import_module
from threading import Thread

# For the description of each field, pydantic searches the whole call stack of the import. The stack
# of a thread is short, which saves half a second of CPU time at the start of each process.
_importing = Thread(target=import_module, args=["scim2_models"])
_importing.start()
_importing.join()
