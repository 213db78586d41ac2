"""Small completions, and the replicas that served them."""

from typing import Final

from tests.functional.gateway.gateway_stack import Frame, Site, request_completion

# The gateway prefers one replica for each path, by a hash. With 24 paths, it is practically certain
# that each of two replicas serves some of them.
PATHS: Final = [f"src/module_{number}.py" for number in range(24)]


def small_frame(site: Site, **fields: object) -> Frame:
    frame = {"type": "complete", "id": site.new_id(), "mode": "fim", "prefix": "a = "}
    return {**frame, "suffix": "\n", "max_tokens": 2, **fields}


async def find_serving_replicas(site: Site) -> set[str]:
    """Complete in files with different paths, and return the replicas that served them."""
    replicas = set()
    async with site.stream() as stream:
        for path in PATHS:
            _, done = await request_completion(stream, small_frame(site, path=path))
            replicas.add(done["meta"]["replica"])
    return replicas
