"""Many matches at once. Instant agents are never late, whatever the referee has to do."""

from __future__ import annotations

from .kit import Home, until

BOTS = ("first", "stride", "random", "greedy")


def test_64_matches_at_once_end_without_a_fault_or_a_loss_of_time(home: Home) -> None:
    service = home.serve()
    for bot in BOTS:
        home.agent(bot, service.address)
    until(lambda: home.ok("agents", "list").out.count("connected") == 4)
    seats = [argument for bot in BOTS for argument in ("--seat", f"agent:{bot}")]
    rows = home.start("match", "guillotine", *seats, "--option", "deals_per_dealer=3", "--matches", 64, "--json")
    assert rows.wait() == 0, rows.output
    assert len(rows.lines) == 64
    records = home.ok("export", "--all", "--format", "record").rows()
    assert [record["rulings"] for record in records] == [[]] * 64
    assert all(len(record["deals"]) == 12 for record in records)
    verified = home.ok("verify", "--all", "--json").rows()
    assert [row["outcome"] for row in verified] == ["verified"] * 64
