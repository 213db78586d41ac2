"""Errors of `tenants`. Each error has a stable `code`, which the API shows.

DomainError            the request cannot be fulfilled as it is; never logged as an exception
├─ Unauthenticated     the presented API key is invalid, expired or not allowed here
├─ Forbidden           the role lacks the permission
├─ NotFound            the object does not exist or is another tenant's; callers cannot tell which
├─ InvalidValue        a value is malformed or out of range; `field` names it
├─ Conflict            the current state does not allow the operation
│  └─ VersionConflict  the object has another version than the caller expected
└─ LimitReached        the limit for a period is used up; the caller can try again later
"""

from django.utils.translation import gettext_noop


class DomainError(Exception):
    code = "error"

    def __init__(self, message: str, /, **values: object) -> None:
        """Format `message`, an English text with a field in braces for each of `values`.

        Write the message as one literal where the error is raised, because the console's
        translation catalogues are made from such literals.
        """
        self.message = message.format(**values) if values else message
        super().__init__(self.message)
        self.wording = message  # with fields in braces, as in the translation catalogues
        self.values = values


class Unauthenticated(DomainError):
    def __init__(self, code: str, message: str, /, **values: object) -> None:
        super().__init__(message, **values)
        self.code = code


class Forbidden(DomainError):
    code = "forbidden"


class NotFound(DomainError):
    code = "not_found"


class InvalidValue(DomainError):
    code = "validation_failed"

    def __init__(self, field: str, message: str, /, **values: object) -> None:
        super().__init__(message, **values)
        self.field = field


class Conflict(DomainError):
    code = "conflict"


class VersionConflict(Conflict):
    code = "version_conflict"

    def __init__(self, *, current_version: int, expected_version: int | None) -> None:
        super().__init__(
            gettext_noop(
                "The current version is {version}, not {expected_version}. Reload and try again."
            ),
            version=current_version,
            expected_version=expected_version,
        )
        self.current_version = current_version
        self.expected_version = expected_version


class LimitReached(DomainError):
    code = "limit_reached"

    def __init__(self, message: str, /, *, retry_after_s: int, **values: object) -> None:
        super().__init__(message, **values)
        self.retry_after_s = retry_after_s
