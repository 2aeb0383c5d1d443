"""Limits: what can be asked for, and that they hold in the process they are for."""

from __future__ import annotations

import resource
from typing import Any

import pytest

from agents_local.kit import Yard
from referee_server.agents.limits import MIB, RANGES, Limits


@pytest.mark.parametrize("name", RANGES)
def test_a_limit_can_be_its_least_its_most_and_none(name: str) -> None:
    for value in (*RANGES[name], None):
        assert getattr(Limits(**{name: value}), name) == value


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("value", ["below", "above", 1.5, True, "64"])
def test_any_other_limit_is_refused_by_name_with_its_range(name: str, value: Any) -> None:
    least, most = RANGES[name]
    value = {"below": least - 1, "above": most + 1}.get(value, value)
    with pytest.raises(ValueError, match=f"limit {name} must be a whole number from {least} to {most}, or none"):
        Limits(**{name: value})


def test_without_any_limit_there_is_still_no_core_file() -> None:
    none = Limits(cpu_s=None, memory_mb=None, file_mb=None, files=None, processes=None)
    assert none.resources() == [(resource.RLIMIT_CORE, 0, 0)]


async def test_limits_hold_in_every_tier(each: Yard) -> None:
    await each.started(each.program("tells", limits=Limits(cpu_s=7, memory_mb=300, file_mb=5, files=50)))
    assert (await each.heard())["limits"] == {
        "RLIMIT_CPU": [7, 8],
        "RLIMIT_DATA": [300 * MIB] * 2,
        "RLIMIT_FSIZE": [5 * MIB] * 2,
        "RLIMIT_NOFILE": [50] * 2,
        "RLIMIT_CORE": [0, 0],
    }


async def test_no_limit_is_above_what_the_service_has_itself(yard: Yard) -> None:
    most = resource.prlimit(yard.agents._process.pid, resource.RLIMIT_NOFILE, (300, 300))
    assert most != (300, 300)
    await yard.started(yard.program("tells", limits=Limits(files=100_000)))
    assert (await yard.heard())["limits"]["RLIMIT_NOFILE"] == [300, 300]


async def test_a_process_finds_nothing_open_cannot_gain_privileges_and_writes_for_itself_alone(each: Yard) -> None:
    await each.started("tells")
    told = await each.heard()
    # Its three streams, and its link to the test.
    assert told["files"] == [0, 1, 2, 3]
    assert (told["umask"], told["no_new_privs"]) == (0o077, True)
