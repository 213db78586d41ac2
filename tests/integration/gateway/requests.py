"""Small completions, and the replicas that served them."""

from typing import Final

from tests.functional.gateway.gateway_stack import Frame, Site, request_completion

_PATHS: Final = [f"src/module_{number}.py" for number in range(12)]


def small_frame(site: Site, **fields: object) -> Frame:
    frame = {"type": "complete", "id": site.new_id(), "mode": "fim", "prefix": "a = "}
    return {**frame, "suffix": "\n", "max_tokens": 2, **fields}


async def find_serving_replicas(site: Site) -> set[str]:
    """Return the replicas that serve files with many different paths."""
    replicas = set()
    async with site.stream() as stream:
        for path in _PATHS:
            _, done = await request_completion(stream, small_frame(site, path=path))
            replicas.add(done["meta"]["replica"])
    return replicas
