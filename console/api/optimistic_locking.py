"""Optimistic locking: the request names the version that it replaces.

The request names it in the header `If-Match`, or else in the field `expected_version` of the body.
If another version is in force, the error contains both versions. Its status is 412 for the header
and 409 for the field.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.http import HttpRequest

from console.api.openapi import EXPECTED_VERSION_FIELD
from console.api.problems import Problem, ProblemRaised
from tenants.base.errors import VersionConflict

_ETAG: Final = re.compile(r'"v(\d{1,9})"')  # nine digits fit Postgres' integers
_ANY_VERSION: Final = "*"
# For `openapi_extra`: the operation accepts If-Match.
ACCEPTS_IF_MATCH: Final = {EXPECTED_VERSION_FIELD: True}


def make_etag(version: int) -> str:
    return f'"v{version}"'


@contextmanager
def check_expected_version(
    request: HttpRequest, expected_version: int | None
) -> Iterator[int | None]:
    """Yield the version to replace; None: any version.

    `expected_version` is the version in the body. It is ignored if `If-Match` names a version. The
    block must raise VersionConflict if another version is in force. Raises ProblemRaised if
    `If-Match` is malformed, or names another version than the one in force.
    """
    header = request.headers.get("If-Match")
    if header is None or header.strip() == _ANY_VERSION:
        yield expected_version
        return
    match = _ETAG.fullmatch(header.strip())
    if match is None:
        raise ProblemRaised(
            Problem(412, "version_conflict", "If-Match is not a valid ETag.", field="If-Match")
        )
    try:
        yield int(match[1])
    except VersionConflict as error:
        versions = (error.current_version, error.expected_version)
        raise ProblemRaised(Problem(412, error.code, error.message, versions=versions)) from error
