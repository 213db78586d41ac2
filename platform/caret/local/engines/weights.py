"""Checks the weights of a model folder before an engine loads them. Loading takes minutes.

A file in the safetensors format begins with the size of its header (8 bytes, little-endian) and the
header (JSON), which lists where the data of each tensor ends.
"""

import json
from pathlib import Path
from typing import Any, Final

from caret.foundation.environment import BadSetting

_SIZE_BYTES: Final = 8  # of the header's size
_MAX_HEADER_BYTES: Final = 100_000_000  # the format's limit


def require_complete_weights(folder: Path) -> None:
    """Check the sizes of the weights' files.

    Raises BadSetting for the first file that is incomplete, as after an interrupted copy.
    """
    for file in sorted(folder.glob("*.safetensors")):
        try:
            expected_bytes = _read_expected_size(file)
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise BadSetting(
                f"CARET_MODEL: {file} is not a complete file of weights (safetensors). Copy or"
                " download it again."
            ) from error
        if (num_bytes := file.stat().st_size) < expected_bytes:
            raise BadSetting(
                f"CARET_MODEL: {file} has {num_bytes} bytes, but its header lists"
                f" {expected_bytes}. Copy or download it again."
            )


def _read_expected_size(file: Path) -> int:
    """Return the size of the complete file.

    Raises ValueError, TypeError or LookupError if the header cannot be read.
    """
    with file.open("rb") as stream:
        header_bytes = int.from_bytes(stream.read(_SIZE_BYTES), "little")
        if header_bytes > _MAX_HEADER_BYTES:
            raise ValueError("the header is too large")
        header: Any = json.loads(stream.read(header_bytes))
    if not isinstance(header, dict):
        raise TypeError("the header is not an object")
    # `data_offsets` is [start, end] of a tensor's data, from the end of the header.
    ends = (entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
    return _SIZE_BYTES + header_bytes + max(ends, default=0)
