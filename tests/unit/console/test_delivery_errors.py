"""Delivery errors are stored in one language and shown in the reader's."""

import ast
import inspect

import pytest
from django.utils.translation import override

from caret.foundation.egress import http_client
from console.texts.delivery_errors import HTTP_CLIENT_ERRORS, translate_delivery_error
from tenants.compliance.audit_sinks.delivery import BAD_STATUS, SILENT


@pytest.mark.parametrize(
    ("error", "german"),
    [
        (BAD_STATUS % {"status": 503}, "Der Empfänger hat mit dem Status 503 geantwortet."),
        (SILENT, "Der Empfänger hat nicht rechtzeitig geantwortet."),
        (
            "The mail server did not accept the message (SMTPDataError).",
            "Der Mailserver hat die Nachricht nicht angenommen (SMTPDataError).",
        ),
        ("The endpoint did not respond (SSLError).", "Das Ziel hat nicht geantwortet (SSLError)."),
        ("Something with 503 in it.", "Something with 503 in it."),
        ("", ""),
    ],
)
def test_known_delivery_errors_are_translated_and_others_stay_unchanged(
    error: str, german: str
) -> None:
    with override("de"):
        assert translate_delivery_error(error) == german


def test_every_fixed_error_of_the_http_client_is_known_and_translated() -> None:
    """The test above covers the client's error that contains a value ("did not respond")."""
    # The messages in the calls `RequestFailed("...")` of the client's source.
    raised_errors = {
        node.args[0].value
        for node in ast.walk(ast.parse(inspect.getsource(http_client)))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == http_client.RequestFailed.__name__
        and isinstance(node.args[0], ast.Constant)
    }

    assert raised_errors == set(HTTP_CLIENT_ERRORS)
    with override("de"):
        for error in HTTP_CLIENT_ERRORS:
            assert translate_delivery_error(error) != error
