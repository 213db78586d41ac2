"""`caret keys create --name "Build server" --kind svc`: a client of the console's REST API.

    caret keys list --all
    caret policy put --body policy.json
    caret export usage --month 2026-10

The commands are generated from the OpenAPI document of the server. Exit codes: 1 if the
server rejected the request, 3 if it did not respond, 2 for any other error, such as a wrong
argument.
"""

import argparse
import json
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
from rich.console import Console

from caret.client.api.arguments import build_parser, collect_arguments, find_operation, read_body
from caret.client.api.export_command import export
from caret.client.api.http_client import ApiClient, ApiError, ApiRequest, ServerUnreachable
from caret.client.api.openapi_operations import (
    IDEMPOTENCY_KEY,
    ParameterLocation,
    UnsupportedApiDocument,
    read_operations,
)
from caret.client.api.output import print_response

OPENAPI_PATH: Final = "/api/v1/openapi.json"
DEFAULT_URL: Final = "http://127.0.0.1:8400"  # the console that `make up` starts
EXIT_REFUSED, EXIT_USAGE, EXIT_UNANSWERED = 1, 2, 3  # exit codes


def main() -> int:
    return run(sys.argv[1:], os.environ)


def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    transport: httpx.BaseTransport | None = None,
) -> int:
    """Run a command and return its exit code. `argv` does not include the script."""
    try:
        url = _read_setting(environment, "CARET_CONSOLE_URL") or DEFAULT_URL
        client = ApiClient(
            url, _read_setting(environment, "CARET_SERVICE_KEY"), transport=transport
        )
    except (OSError, ValueError, httpx.InvalidURL) as error:
        return _report_error(str(error), EXIT_USAGE)
    try:
        options = build_parser(read_operations(_fetch_document(client))).parse_args(argv)
        return _run_operation(client, options)
    except ApiError as error:
        return _report_error(f"{error} ({error.code})", EXIT_REFUSED)
    except ServerUnreachable as error:
        return _report_error(str(error), EXIT_UNANSWERED)
    except (UnsupportedApiDocument, ValueError, OSError) as error:
        return _report_error(str(error), EXIT_USAGE)
    finally:
        client.close()


def _fetch_document(client: ApiClient) -> Any:
    response = client.request(ApiRequest("GET", OPENAPI_PATH))
    try:
        return response.json()
    except ValueError as error:
        raise UnsupportedApiDocument("The server is not a Caret console.") from error


def _run_operation(client: ApiClient, options: argparse.Namespace) -> int:
    if vars(options).get("is_export"):
        sys.stdout.write(json.dumps(export(client, options), ensure_ascii=False) + "\n")
        return 0
    for number, response in enumerate(_iterate_responses(client, options)):
        if options.out is not None:
            _write_response(options.out, response, is_first=number == 0)
        else:
            _print_response(response, options)
    return 0


def _iterate_responses(client: ApiClient, options: argparse.Namespace) -> Iterator[httpx.Response]:
    """Yield the response. With `--all`, yield a response for each page."""
    api_request = _build_request(options)
    wants_all = bool(vars(options).get("all"))
    while True:
        response = client.request(api_request)
        yield response
        cursor = response.json().get("next_cursor") if wants_all else None
        if cursor is None:
            return
        api_request = replace(api_request, query={**api_request.query, "cursor": cursor})


def _build_request(options: argparse.Namespace) -> ApiRequest:
    operation = find_operation(options)
    path = operation.path
    for name, value in collect_arguments(options, ParameterLocation.PATH).items():
        path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    headers = {
        name: str(value)
        for name, value in collect_arguments(options, ParameterLocation.HEADER).items()
    }
    if operation.method == "POST" and operation.is_repeatable:
        headers[IDEMPOTENCY_KEY] = str(uuid.uuid4())
    return ApiRequest(
        operation.method,
        path,
        query={
            name: _to_query_value(value)
            for name, value in collect_arguments(options, ParameterLocation.QUERY).items()
        },
        headers=headers,
        body=read_body(options),
        is_repeatable=operation.is_repeatable,
    )


def _to_query_value(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _write_response(path: Path, response: httpx.Response, *, is_first: bool) -> None:
    """Write a response. Append later pages, each on a line of its own."""
    with path.open("wb" if is_first else "ab") as file:
        file.write(response.content if is_first else b"\n" + response.content)


def _print_response(response: httpx.Response, options: argparse.Namespace) -> None:
    if not response.headers.get("Content-Type", "").startswith("application/json"):
        sys.stdout.buffer.write(response.content)
        return
    if options.json or not sys.stdout.isatty():
        sys.stdout.write(json.dumps(response.json(), ensure_ascii=False) + "\n")
        return
    print_response(Console(), response.json())


def _read_setting(environment: Mapping[str, str], name: str) -> str | None:
    """Return a setting from the file that NAME_FILE names, or else from the environment.

    Raises OSError.
    """
    if file := environment.get(f"{name}_FILE"):
        return Path(file).read_text(encoding="utf-8").strip()
    return environment.get(name) or None


def _report_error(message: str, code: int) -> int:
    sys.stderr.write(f"caret: {message}\n")
    return code
