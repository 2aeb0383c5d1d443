"""The tiers that work here, and a yard in each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from agents_local.kit import Yard
from referee_server.agents.isolation import TIERS, Probe, Tier, probe


@pytest.fixture(scope="session")
def probes() -> Mapping[Tier, Probe]:
    return {tier: probe(tier) for tier in TIERS}


@pytest.fixture
async def yard(tmp_path: Path, probes: Mapping[Tier, Probe]) -> AsyncIterator[Yard]:
    """Agents as plain processes."""
    yard = Yard(tmp_path, probes, "process")
    await yard.open()
    yield yard
    await yard.close()


@pytest.fixture
async def sandbox(tmp_path: Path, probes: Mapping[Tier, Probe]) -> AsyncIterator[Yard]:
    """Agents in sandboxes, where there are any."""
    if not probes["bubblewrap"].works:
        pytest.skip(f"bubblewrap: {probes['bubblewrap'].why}")
    yard = Yard(tmp_path, probes, "bubblewrap")
    await yard.open()
    yield yard
    await yard.close()


@pytest.fixture(params=TIERS)
async def each(request: pytest.FixtureRequest, tmp_path: Path, probes: Mapping[Tier, Probe]) -> AsyncIterator[Yard]:
    """Agents in each tier that works here."""
    tier: Tier = request.param
    if not probes[tier].works:
        pytest.skip(f"{tier}: {probes[tier].why}")
    yard = Yard(tmp_path, probes, tier)
    await yard.open()
    yield yard
    await yard.close()
