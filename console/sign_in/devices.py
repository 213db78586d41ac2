"""Browsers and networks from which a user of an account has signed in before.

A browser is recognised by a signed cookie, a network by an entry in Redis. Neither grants access.
Each known browser and each known network has its own limit for wrong passwords and codes
(console.limits.throttling), so that other people's attempts do not lock out the account's owner.
Source of the cookie: OWASP, "Slow Down Online Guessing Attacks with Device Cookies".

The cookie contains the version of the account's password, so a new password invalidates the cookie.

An account is an e-mail address, or "operator:" and an operator's handle.
"""

import secrets
from datetime import timedelta
from typing import Final

import structlog
from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare, salted_hmac
from redis import RedisError

from console.limits.throttling import Secret, SecretAttempt, is_known_network, remember_network
from console.sign_in.current_member import client_address
from console.sign_in.sessions.operator_cookies import is_operator_path
from tenants.fleet.operators.accounts import find_operator_password_version
from tenants.identity.passwords.operations import find_password_version

logger = structlog.get_logger(__name__)

LIFETIME: Final = timedelta(days=90)
_PURPOSE: Final = "caret.known-device/1"  # salt of signatures and hashes
_OPERATOR: Final = "operator:"  # prefix of operators' accounts
_DIGEST_CHARS: Final = 16  # of an account in the cookie's name, in hex


def build_attempt(request: HttpRequest, secret: Secret, account: str) -> SecretAttempt:
    """Return an attempt that console.limits.throttling can count. Raises redis.RedisError."""
    address = client_address(request)
    device = _device_of(request, account)
    # Attempts of a known browser are counted by browser, so their network is not looked up.
    is_network_known = device is None and is_known_network(account=account, address=address)
    return SecretAttempt(secret, account, address, device, is_network_known)


def remember_device(request: HttpRequest, response: HttpResponse, account: str) -> None:
    """Remember the browser and the network of a user who has just signed in with all factors.

    Sets the cookie of the response. A known browser keeps its ID: with each new ID, it could make
    more guesses.
    """
    device = _device_of(request, account) or secrets.token_urlsafe(16)
    is_operator = is_operator_path(request)
    response.set_cookie(
        _cookie_name(request, account),
        signing.dumps([device, _password_version(account)], salt=_salt_for(account)),
        max_age=LIFETIME,
        path=f"/{settings.OPERATORS_PATH}" if is_operator else "/",
        secure=settings.HTTPS,
        httponly=True,
        samesite="Strict" if is_operator else "Lax",
    )
    try:
        remember_network(account=account, address=client_address(request))
    except RedisError:  # the user is signed in, and the cookie is enough
        logger.warning("sign_in.network_not_remembered")


def _device_of(request: HttpRequest, account: str) -> str | None:
    """Return the browser's ID for this account.

    None: nobody signed in to the account with this browser within LIFETIME, or the account's
    password has changed since the last sign-in.
    """
    cookie = request.COOKIES.get(_cookie_name(request, account), "")
    try:
        device, version = signing.loads(cookie, salt=_salt_for(account), max_age=LIFETIME)
    except (signing.BadSignature, ValueError):
        return None
    # The password's version is queried only for a valid cookie. Without a cookie, the response time
    # therefore does not reveal whether the account exists.
    return str(device) if constant_time_compare(version, _password_version(account)) else None


def _password_version(account: str) -> str:
    if account.startswith(_OPERATOR):
        return find_operator_password_version(handle=account.removeprefix(_OPERATOR))
    return find_password_version(email=account)


def _cookie_name(request: HttpRequest, account: str) -> str:
    """Return the name of the account's cookie, which does not reveal the account.

    The prefix `__Host-` requires the path /. Operators' cookies have another path, because they
    must not be sent to the console.
    """
    digest = salted_hmac(_PURPOSE, _normalize_account(account), algorithm="sha256").hexdigest()
    prefix = "__Secure-" if is_operator_path(request) else "__Host-"
    return f"{prefix if settings.HTTPS else ''}caret-device-{digest[:_DIGEST_CHARS]}"


def _salt_for(account: str) -> str:
    return f"{_PURPOSE}|{_normalize_account(account)}"


def _normalize_account(account: str) -> str:
    return account.strip().lower()
