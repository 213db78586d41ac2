"""SCIM 2.0 (RFC 7643, 7644): users and groups provisioned by identity providers."""

from importlib import import_module
from threading import Thread

# To read the descriptions of a class's fields, pydantic searches the call stack of the import. The
# stack of a new thread is short. Therefore, the import in a thread saves half a second of CPU time
# at the start of each process.
_importing = Thread(target=import_module, args=["scim2_models"])
_importing.start()
_importing.join()
