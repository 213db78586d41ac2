"""What answers where nothing is."""

from inference.consumers.http import HttpConsumer
from inference.consumers.openai_schemas import error_body
from inference.errors import BadRequest, CompletionError


class NotFoundConsumer(HttpConsumer):
    def authorize(self) -> None:
        raise BadRequest("not_found", "There is nothing at this address.", http_status=404)

    def encode_error(self, error: CompletionError) -> bytes:
        return error_body(error)
