"""Accounts of operators.

They are created on the command line. Each has a password and a second factor from the start.
"""

import re
import secrets
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Final

from django.contrib.auth.hashers import check_password, make_password
from django.db import IntegrityError, transaction
from django.utils.crypto import constant_time_compare, salted_hmac

from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.operator_roles import WRITE_ROLES, OperatorRole
from tenants.base.validation.text import is_storable, validate_printable
from tenants.fleet.operators import totp
from tenants.models import Operator

_HANDLE: Final = re.compile(r"[a-z][a-z0-9]{1,19}")
_PASSWORD_BYTES: Final = 18  # of randomness, in a generated password
_MAX_PASSWORD_CHARS: Final = 256
_MAX_NAME_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class OperatorView:
    id: uuid.UUID
    handle: str
    name: str
    role: OperatorRole
    created_at: datetime
    disabled_at: datetime | None  # None: enabled
    password_version: str = field(repr=False)  # a digest of the password; sessions are bound to it

    @property
    def can_change(self) -> bool:
        return self.role in WRITE_ROLES


@dataclass(frozen=True, slots=True)
class Credentials:
    """The password and second factor of a new or reset operator, shown once."""

    password: str = field(repr=False)
    totp_uri: str = field(repr=False)  # otpauth://..., for an authenticator app


def create_operator(*, handle: str, name: str, role: OperatorRole, now: datetime) -> Credentials:
    """Create an operator. A handle is never reused, because audit logs name the operator by it.

    Raises InvalidValue, Conflict.
    """
    if _HANDLE.fullmatch(handle) is None:
        raise InvalidValue(
            "handle", "Enter 2 to 20 lower-case letters and digits, starting with a letter."
        )
    name = name.strip()
    if not 1 <= len(name) <= _MAX_NAME_CHARS:
        raise InvalidValue("name", "Enter a name of 1 to {most} characters.", most=_MAX_NAME_CHARS)
    validate_printable("name", name)
    row = Operator(handle=handle, name=name, role=role, created_at=now)
    credentials = _renew_credentials(row)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict("The operator {handle} already exists.", handle=handle) from error
    return credentials


def reset_operator(*, handle: str) -> Credentials:
    """Set a new password and second factor, enable the account and end its sessions.

    Raises NotFound.
    """
    with transaction.atomic():
        row = _lock_operator(handle)
        credentials = _renew_credentials(row)
        row.disabled_at = None
        row.save(update_fields=["password", "sealed_factor", "last_totp_step", "disabled_at"])
    return credentials


def disable_operator(*, handle: str, now: datetime) -> None:
    """Disable an operator and end the account's sessions at once. Raises NotFound."""
    with transaction.atomic():
        row = _lock_operator(handle)
        if row.disabled_at is None:
            row.disabled_at = now
            row.save(update_fields=["disabled_at"])


def list_operators() -> list[OperatorView]:
    """Return all operators by handle."""
    return [_to_view(row) for row in Operator.objects.order_by("handle")]


def authenticate_operator(
    *, handle: str, password: str, code: str, now: datetime
) -> OperatorView | None:
    """Return the operator; None if handle, password or code is wrong, or the account is disabled.

    A code is accepted once: of two concurrent sign-ins with it, one succeeds.
    """
    row = _find_enabled(handle=handle) if is_storable(handle) else None
    password_hash = _make_unmatchable_hash() if row is None else row.password
    is_right = len(password) <= _MAX_PASSWORD_CHARS and check_password(password, password_hash)
    if row is None or not is_right:
        return None
    return _to_view(row) if _use_code(row, code, now) else None


def has_password(*, handle: str, password: str) -> bool:
    """Return whether an enabled operator has this password.

    Only for commands of the installation, never for sign-in: it checks no code and does not bound
    the length of the password, and the duration of the call reveals whether the handle exists.
    """
    row = _find_enabled(handle=handle)
    return row is not None and check_password(password, row.password)


def verify_operator_code(*, operator_id: uuid.UUID, code: str, now: datetime) -> bool:
    """Return whether the code is right, to confirm a sensitive action. A code is accepted once."""
    row = _find_enabled(id=operator_id)
    return row is not None and _use_code(row, code, now)


def find_operator(*, operator_id: str, password_version: str) -> OperatorView | None:
    """Return a session's operator. One query.

    None: the operator was disabled or reset after the session began, or the ID is malformed.
    """
    try:
        row = _find_enabled(id=uuid.UUID(operator_id))
    except ValueError:
        return None
    view = None if row is None else _to_view(row)
    if view is None or not constant_time_compare(view.password_version, password_version):
        return None
    return view


def find_operator_password_version(*, handle: str) -> str:
    """Return the operator's `password_version`; "": an unknown or disabled operator."""
    row = _find_enabled(handle=handle) if is_storable(handle) else None
    return "" if row is None else _to_view(row).password_version


def _use_code(row: Operator, code: str, now: datetime) -> bool:
    """Return whether the code is right, and record its time step so that it is accepted once."""
    secret = totp.unseal_secret(bytes(row.sealed_factor), row.id)
    step = totp.match_time_step(secret, code, now=now, after=row.last_totp_step)
    if step is None:
        return False
    # If two requests send the same code at once, only one of them succeeds.
    unused_rows = Operator.objects.filter(id=row.id, last_totp_step__lt=step)
    return bool(unused_rows.update(last_totp_step=step))


def _find_enabled(**fields: object) -> Operator | None:
    return Operator.objects.filter(disabled_at=None, **fields).order_by("id").first()


def _lock_operator(handle: str) -> Operator:
    try:
        return Operator.objects.select_for_update().get(handle=handle)
    except Operator.DoesNotExist as error:
        raise NotFound("The operator {handle} does not exist.", handle=handle) from error


def _renew_credentials(row: Operator) -> Credentials:
    """Set a new password and second factor in the row, without saving it, and return both."""
    password, secret = secrets.token_urlsafe(_PASSWORD_BYTES), totp.generate_secret()
    row.password = make_password(password)
    row.sealed_factor = totp.seal_secret(secret, row.id)
    row.last_totp_step = 0
    return Credentials(password, totp.build_totp_uri(secret, row.handle))


@cache
def _make_unmatchable_hash() -> str:
    """Return a hash to check for an unknown operator, so that sign-in takes equally long."""
    return make_password(secrets.token_urlsafe(_PASSWORD_BYTES))


def _to_view(row: Operator) -> OperatorView:
    return OperatorView(
        id=row.id,
        handle=row.handle,
        name=row.name,
        role=OperatorRole(row.role),
        created_at=row.created_at,
        disabled_at=row.disabled_at,
        password_version=salted_hmac(
            "operator-session/1", row.password, algorithm="sha256"
        ).hexdigest(),
    )
