"""What `tenants` refuses, and why. Each class has a stable `code`, which the API shows.

Refused           ours to say, theirs to mend; never logged as an exception
├─ Unauthenticated  the key that was presented is not good, or not here, or not any more
├─ Forbidden      the role may not
├─ NotFound       there is no such thing, or it is another tenant's: nobody can tell which
├─ Invalid        a value is malformed or out of range; `field` names it
├─ Conflict       it is not in a state in which this can be done
│  └─ Outdated    another version is in force than the one that was seen
└─ LimitReached   as much was done as is allowed within a period; it can be done later
"""

from django.utils.translation import gettext_noop


class DomainError(Exception):
    code = "refused"

    def __init__(self, message: str, /, **values: object) -> None:
        """`message`: English, with a field in braces for each of `values`. The console gathers it
        into its catalogues from where it is raised, so it is written there, whole."""
        self.message = message.format(**values) if values else message
        super().__init__(self.message)
        self.wording = message
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
    code = "invalid"

    def __init__(self, field: str, message: str, /, **values: object) -> None:
        super().__init__(message, **values)
        self.field = field


class Conflict(DomainError):
    code = "conflict"


class VersionConflict(Conflict):
    code = "version_conflict"

    def __init__(self, *, held: int, replaced: int | None) -> None:
        super().__init__(
            gettext_noop("The current version is {held}, not {replaced}. Reload and try again."),
            held=held,
            replaced=replaced,
        )
        self.held = held
        self.replaced = replaced


class LimitReached(DomainError):
    code = "limit_reached"

    def __init__(self, message: str, /, *, retry_after_s: int, **values: object) -> None:
        super().__init__(message, **values)
        self.retry_after_s = retry_after_s
