"""The pool configuration: the file in which an operator describes the pools."""

from pathlib import Path

import pytest

from caret.contracts.policy import Tier
from caret.foundation.environment import BadSetting
from inference.pools.cache_isolation import SpeculationMethod
from inference.pools.pool_config import Replica, read_pool_config

FAST = """
[[pools]]
name = "quick"
tier = "fast"
model = "qwen"
tokenizer = "/models/qwen"
max_context_tokens = 8192
replicas = ["http://10.0.0.1:8000/", "https://engine.example.com"]
"""
QUALITY = FAST.replace('"quick"', '"thorough"').replace('"fast"', '"quality"')


def _write(folder: Path, text: str) -> Path:
    path = folder / "pools.toml"
    path.write_text(text)
    return path


def test_a_valid_file_gives_a_pool_for_each_tier(tmp_path: Path) -> None:
    pools = read_pool_config(_write(tmp_path, FAST + QUALITY))

    assert pools.find_shared(Tier.FAST).name == "quick"
    assert pools.find_shared(Tier.QUALITY).name == "thorough"


def test_a_pool_can_be_dedicated_to_a_tenant(tmp_path: Path) -> None:
    dedicated = FAST.replace("quick", "own") + 'tenants = ["acme"]\n'

    pools = read_pool_config(_write(tmp_path, dedicated + FAST + QUALITY))

    assert pools.find_shared(Tier.FAST).name == "quick"
    assert pools.find_dedicated("acme", Tier.FAST) == "own"
    assert pools.find_dedicated("acme", Tier.QUALITY) is None
    assert pools.find_dedicated("globex", Tier.FAST) is None


def test_the_first_shared_pool_of_a_tier_is_the_default(tmp_path: Path) -> None:
    second = FAST.replace("quick", "second")

    pools = read_pool_config(_write(tmp_path, FAST + QUALITY + second))

    assert pools.find_shared(Tier.FAST).name == "quick"
    assert "second" in pools.by_name


def test_a_replica_is_named_by_host_and_port(tmp_path: Path) -> None:
    pools = read_pool_config(_write(tmp_path, FAST + QUALITY))

    assert pools.find_shared(Tier.FAST).replicas == (
        Replica(name="10.0.0.1:8000", url="http://10.0.0.1:8000"),
        Replica(name="engine.example.com", url="https://engine.example.com"),
    )


def test_a_replica_may_have_further_fields(tmp_path: Path) -> None:
    table = (
        '{ url = "http://10.0.0.3:8000/", kv_events = "tcp://10.0.0.3:5557", '
        'kv_replay = "tcp://10.0.0.3:5558", speculation = "ngram", '
        'kv_connector = "LMCacheMPConnector", max_num_seqs = 8 }'
    )

    pools = read_pool_config(_write(tmp_path, _with_first_replica(table) + QUALITY))

    assert pools.find_shared(Tier.FAST).replicas[0] == Replica(
        name="10.0.0.3:8000",
        url="http://10.0.0.3:8000",
        kv_events="tcp://10.0.0.3:5557",
        kv_replay="tcp://10.0.0.3:5558",
        speculation=SpeculationMethod.NGRAM,
        max_num_seqs=8,
        # `kv_connector` is only checked, not stored.
    )


def test_the_batch_size_of_a_pool_is_the_sum_of_its_replicas_sizes(tmp_path: Path) -> None:
    # The size serves as the port, too, so that the two replicas differ.
    tables = (f'{{ url = "http://h:{size}", max_num_seqs = {size} }}' for size in (8, 16))
    pool_with_sizes = FAST.replace("replicas = [", f"replicas = [{', '.join(tables)}, ")

    pools = read_pool_config(_write(tmp_path, pool_with_sizes + QUALITY))

    assert len(pools.find_shared(Tier.FAST).replicas) == 4
    # The two replicas without a limit count like the replica with the lowest limit.
    assert pools.find_shared(Tier.FAST).max_num_seqs == 8 + 16 + 8 + 8
    assert pools.find_shared(Tier.QUALITY).max_num_seqs is None


def test_suffix_decoding_is_allowed_without_its_cache(tmp_path: Path) -> None:
    table = _suffix_replica("suffix_decoding_max_cached_requests = 0")

    pools = read_pool_config(_write(tmp_path, _with_first_replica(table) + QUALITY))

    assert pools.find_shared(Tier.FAST).replicas[0].speculation is SpeculationMethod.SUFFIX


def test_a_replica_of_two_pools_is_listed_once(tmp_path: Path) -> None:
    pools = read_pool_config(_write(tmp_path, FAST + QUALITY))

    assert [replica.name for replica in pools.list_replicas()] == [
        "10.0.0.1:8000",
        "engine.example.com",
    ]
    assert pools.list_replicas(min_replicas=3) == ()  # each pool has only two replicas


def _with_first_replica(replica: str) -> str:
    """Return the pool FAST with this replica in place of its first one."""
    return FAST.replace('"http://10.0.0.1:8000/"', replica)


DISCOVER = FAST.replace(
    'replicas = ["http://10.0.0.1:8000/", "https://engine.example.com"]',
    'discover = { url = "http://engines:8000", kv_events = "tcp://engines:5557" }',
)


def test_a_dns_name_gives_a_replica_for_each_address(tmp_path: Path) -> None:
    pool = read_pool_config(_write(tmp_path, DISCOVER + QUALITY)).by_name["quick"]

    assert pool.replicas == ()
    assert pool.discover is not None
    assert pool.discover.host == "engines"
    assert pool.discover.with_address("10.1.2.3") == Replica(
        name="10.1.2.3:8000", url="http://10.1.2.3:8000", kv_events="tcp://10.1.2.3:5557"
    )
    assert pool.discover.with_address("fd00::7").url == "http://[fd00::7]:8000"


def test_the_replicas_of_a_pool_may_change(tmp_path: Path) -> None:
    pools = read_pool_config(_write(tmp_path, DISCOVER + QUALITY))
    replica = Replica(name="10.1.2.3:8000", url="http://10.1.2.3:8000")

    pools.set_replicas("quick", [replica])

    assert pools.find_shared(Tier.FAST).replicas == (replica,)
    assert replica in pools.list_replicas()


def _with_connector(name: str) -> str:
    """Return a file with a replica that has this KV connector."""
    replica = f'{{ url = "http://10.0.0.9:8000", kv_connector = "{name}" }}'
    return _with_first_replica(replica) + QUALITY


def _suffix_replica(field: str) -> str:
    """Return a replica with suffix decoding and this further field."""
    return f'{{ url = "http://10.0.0.9:8000", speculation = "suffix", {field} }}'


# For each name: the file, and a part of the error message. A connector leaks
# if tenants share its cache. #2880 is an issue of LMCache.
BAD_FILES = {
    "suffix decoding with vLLM's default": (
        _with_first_replica('{ url = "http://10.0.0.9:8000", speculation = "suffix" }') + QUALITY,
        "quick: suffix decoding shares a tree",
    ),
    "suffix decoding with a cache": (
        _with_first_replica(_suffix_replica("suffix_decoding_max_cached_requests = 1")) + QUALITY,
        "suffix_decoding_max_cached_requests = 0",
    ),
    "another speculation": (
        _with_first_replica('{ url = "http://10.0.0.9:8000", speculation = "magic" }') + QUALITY,
        "speculation",
    ),
    "a connector that leaks": (_with_connector("LMCacheConnectorV1"), "#2880"),
    "another connector that leaks": (_with_connector("HF3FSKVConnector"), "tenants share its"),
    "an unknown connector": (_with_connector("MultiConnector"), "it is not known"),
    "events by HTTP": (
        _with_first_replica('{ url = "http://10.0.0.9:8000", kv_events = "http://10.0.0.9:5557" }')
        + QUALITY,
        "kv_events and kv_replay must be tcp:// addresses",
    ),
    "events at an invalid port": (
        _with_first_replica('{ url = "http://10.0.0.9:8000", kv_events = "tcp://10.0.0.9:many" }')
        + QUALITY,
        "kv_events and kv_replay must be tcp:// addresses",
    ),
    "two entries of a replica that differ": (
        FAST
        + QUALITY.replace(
            '"http://10.0.0.1:8000/"', '{ url = "http://10.0.0.1:8000", speculation = "ngram" }'
        ),
        "two entries of the replica 10.0.0.1:8000 differ",
    ),
    "not TOML": ("pools = [", "Invalid value"),
    "not UTF-8": ("\udcff", "utf-8"),
    "nothing": ("", "pools"),
    "a missing field": (FAST.replace('model = "qwen"\n', ""), "model"),
    "an unknown field": (FAST + 'colour = "red"\n', "colour"),
    "an unknown tier": (FAST.replace('"fast"', '"slow"'), "tier"),
    "a number as text": (FAST.replace("8192", '"8192"'), "max_context_tokens"),
    "a context that is too small": (FAST.replace("8192", "512") + QUALITY, "max_context_tokens"),
    "two pools with one name": (FAST + FAST, "two pools have the name quick"),
    "two pools of a tenant": (
        FAST + QUALITY + "".join(FAST.replace("quick", n) + 'tenants = ["acme"]\n' for n in "ab"),
        "two pools name the tenant acme",
    ),
    "no pool for a tier": (FAST, "no shared pool has the tier quality"),
    "no replicas": (
        FAST.replace('["http://10.0.0.1:8000/", "https://engine.example.com"]', "[]") + QUALITY,
        "quick has no replicas",
    ),
    "a batch of no requests": (
        FAST.replace('"http://10.0.0.1:8000/"', '{ url = "http://h:1", max_num_seqs = 0 }')
        + QUALITY,
        "max_num_seqs below 1",
    ),
    "a block size of zero": (FAST + "block_size = 0\n" + QUALITY, "block_size below 1"),
    "a budget above the tier's limit": (
        FAST.replace("max_context_tokens = ", "prompt_tokens = 4001\nmax_context_tokens = ")
        + QUALITY,
        "quick has prompt_tokens 4001; write 500 to",
    ),
    "an invalid port": (FAST.replace(":8000", ":many") + QUALITY, "quick has a replica"),
    "an unknown connector of replicas found by name": (
        DISCOVER.replace('"tcp://engines:5557"', '"tcp://engines:5557", kv_connector = "Own"')
        + QUALITY,
        "it is not known",
    ),
    "no address": (FAST.replace("http://10", "10") + QUALITY, "quick has a replica"),
    "half of an IPv6 address": (FAST.replace("10.0.0.1:8000", "[::1") + QUALITY, "quick has a rep"),
    "a password": (FAST.replace("10.0.0.1", "user:word@10.0.0.1") + QUALITY, "quick has a replica"),
    "half of an IPv6 address of events": (
        DISCOVER.replace("tcp://engines:5557", "tcp://[::1") + QUALITY,
        "kv_events and kv_replay must be tcp:// addresses",
    ),
    "another scheme": (FAST.replace("http://10", "ftp://10") + QUALITY, "quick has a replica"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_an_invalid_file_is_rejected_with_its_error(tmp_path: Path, name: str) -> None:
    text, message = BAD_FILES[name]
    path = tmp_path / "pools.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))  # "\udcff" becomes the byte 0xff

    with pytest.raises(BadSetting, match=message) as rejected:
        read_pool_config(path)

    assert "CARET_POOLS_FILE" in str(rejected.value)


def test_a_missing_file_is_rejected_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"pools\.toml cannot be read: No such file"):
        read_pool_config(tmp_path / "pools.toml")


@pytest.mark.parametrize("pattern", ["10.12.0.1/16", "http://a", "*", "a b", ""])
def test_allowed_replica_hosts_must_be_networks_or_names(tmp_path: Path, pattern: str) -> None:
    extensible = f'{FAST}additions_from = ["{pattern}"]\n'

    with pytest.raises(BadSetting, match="the pool quick has additions_from"):
        read_pool_config(_write(tmp_path, extensible + QUALITY))


def test_allowed_replica_hosts_apply_to_their_pool(tmp_path: Path) -> None:
    extensible = f'{FAST}additions_from = ["10.12.0.0/16", "*.engines.svc"]\n'

    pools = read_pool_config(_write(tmp_path, extensible + QUALITY))

    assert pools.find_shared(Tier.FAST).allowed_replica_hosts == ("10.12.0.0/16", "*.engines.svc")
    assert pools.find_shared(Tier.QUALITY).allowed_replica_hosts == ()


@pytest.mark.parametrize(
    ("line", "edit_format"),
    [
        ("", None),
        ('edit_format = "zeta"', "zeta"),
        ('family = "zeta"', "zeta"),
        ('family = "qwen"', None),
    ],
)
def test_the_edit_format_is_the_named_one_or_that_of_the_model_family(
    tmp_path: Path, line: str, edit_format: str | None
) -> None:
    # The line belongs to the last pool of the file, the one of the tier quality.
    pools = read_pool_config(_write(tmp_path, FAST + QUALITY + line + "\n"))

    assert pools.find_shared(Tier.QUALITY).edit_format == edit_format
    assert pools.find_shared(Tier.FAST).edit_format is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('edit_format = "omega"', "pool thorough: Unknown edit format omega; the formats are zeta"),
        ('family = "omega"', "pool thorough: Unknown model family omega"),
    ],
)
def test_an_unknown_edit_format_or_model_family_is_rejected(
    tmp_path: Path, line: str, problem: str
) -> None:
    with pytest.raises(BadSetting, match=problem):
        read_pool_config(_write(tmp_path, FAST + QUALITY + line + "\n"))
