"""The chart's copies of values agree with the code."""

import json
import re
from typing import Any

from caret.celery import app
from caret.local.paths import REPOSITORY
from inference.pools.cache_isolation import SALTED_CONNECTORS, SpeculationMethod
from inference.pools.pool_config import DiscoverySource, PoolEntry, ReplicaEntry

CHART = REPOSITORY / "platform" / "deploy" / "helm" / "caret"
SETTINGS = REPOSITORY / "platform" / "docs" / "settings.md"


def test_every_queue_has_one_worker() -> None:
    queue_lists = re.findall(r"^    queues: \[(.+)\]$", _text("values.yaml"), re.MULTILINE)
    served = [queue for queues in queue_lists for queue in queues.split(", ")]

    assert sorted(served) == sorted(queue.name for queue in app.conf.task_queues)


def test_settings_that_the_chart_sets_are_documented() -> None:
    texts = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    set_names = set(re.findall(r"\{name: ((?:CARET_|DATABASE_|REDIS_)\w+),", texts))

    documented = SETTINGS.read_text()
    assert len(set_names) > 20
    # A secret may be given by its value or, under the name with _FILE, by a file.
    assert [
        name
        for name in set_names
        if f"`{name}`" not in documented and f"`{name.removesuffix('_FILE')}`" not in documented
    ] == []


def test_the_pools_file_has_only_fields_that_gateways_read() -> None:
    pools = _text("templates/_pools.tpl")
    catalog = pools[pools.index('define "caret.catalog"') :]
    fields = set(re.findall(r"^(\w+) = ", catalog, re.MULTILINE))
    replica_fields = set(re.findall(r"\"(\w+) = ", catalog))

    assert len(fields) > 5
    assert fields <= set(PoolEntry.__struct_fields__)
    assert replica_fields == set(ReplicaEntry.__struct_fields__)


def test_the_schema_allows_the_values_that_gateways_accept() -> None:
    schema = json.loads(_text("values.schema.json"))
    pool = schema["properties"]["pools"]["additionalProperties"]["properties"]

    # With the source `names`, the chart lists the replicas itself, so gateways discover nothing.
    assert set(pool["source"]["enum"]) - {"names"} == {DiscoverySource.KUBERNETES}
    assert _choice(pool["kvTier"], "connector") == set(SALTED_CONNECTORS)
    assert _choice(pool["speculation"], "method") == {*SpeculationMethod, "none"}


def test_the_schema_covers_every_top_level_value() -> None:
    value_names = set(re.findall(r"^(\w+):", _text("values.yaml"), re.MULTILINE))

    # `global` is a value of Helm itself.
    assert value_names == set(json.loads(_text("values.schema.json"))["properties"]) - {"global"}


def _text(name: str) -> str:
    return (CHART / name).read_text()


def _choice(field: dict[str, Any], name: str) -> set[str]:
    """Return the values that the schema allows for a property of this field."""
    shapes = [shape for shape in field["anyOf"] if "properties" in shape]
    return {value for shape in shapes for value in shape["properties"][name]["enum"]}
