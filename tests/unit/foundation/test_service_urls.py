"""URLs of databases and mail servers in operators' settings."""

import traceback

import pytest

from caret.foundation.environment import BadSetting
from caret.settings.service_urls import database_from_url, mail_from_url


@pytest.mark.parametrize(
    ("url", "port", "uses_starttls"),
    [("smtp://u:p@host", 587, True), ("smtps://u:p@host", 465, False), ("smtp://h:25", 25, True)],
)
def test_mail_is_always_encrypted(url: str, port: int, uses_starttls: bool) -> None:
    settings = mail_from_url(url)

    assert settings["EMAIL_PORT"] == port
    assert settings["EMAIL_USE_TLS"] is uses_starttls
    assert settings["EMAIL_USE_SSL"] is not uses_starttls


@pytest.mark.parametrize(
    "url", ["", "host", "host:25", "smtp://", "smtp+starttls://u:p@host:587", "http://host:25"]
)
def test_an_unknown_mail_url_is_rejected(url: str) -> None:
    with pytest.raises(BadSetting, match="CARET_SMTP_URL"):
        mail_from_url(url)


@pytest.mark.parametrize("url", ["smtp://u:secret/@host"])
def test_the_error_for_a_malformed_mail_url_does_not_quote_the_password(url: str) -> None:
    with pytest.raises(BadSetting) as exc_info:
        mail_from_url(url)

    assert "secret" not in "".join(traceback.format_exception(exc_info.value))


@pytest.mark.parametrize(
    "url", ["postgresql://u:secret%ZZ@host/db", "postgresql://u:secret@[::1/d"]
)
def test_the_error_for_a_malformed_database_url_does_not_quote_the_password(url: str) -> None:
    with pytest.raises(BadSetting) as exc_info:
        database_from_url(url)

    assert "secret" not in "".join(traceback.format_exception(exc_info.value))
