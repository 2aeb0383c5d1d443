"""A host's commands to a running service: match, cancel, agents; and what agents see of them."""

from __future__ import annotations

import json
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from .kit import BOTS4, SEED, Home, Service, until

REGICIDE2 = ("--seat", "greedy", "--seat", "first")


@pytest.fixture(scope="module")
def service(shared: Home) -> Service:
    return shared.serve()


def created(home: Home, match_id: str) -> Any:
    """Returns the first event of a match."""
    return json.loads(home.ok("export", match_id, "--format", "jsonl").out.splitlines()[0])["match_created"]


@pytest.mark.usefixtures("service")
class TestMatch:
    def test_its_result_is_one_json_line_a_match(self, shared: Home) -> None:
        rows = shared.ok("match", "regicide", *REGICIDE2, "--matches", 2, "--option", "target=5", "--json").rows()
        assert len(rows) == 2
        for row in rows:
            assert list(row) == ["match", "seats", "totals", "places", "end", "digest"]
            assert (row["seats"], row["end"]) == (["greedy", "first"], "completed")
            assert max(row["totals"]) >= 5

    def test_its_result_is_a_table_for_people(self, shared: Home) -> None:
        head, row = shared.ok("match", "regicide", *REGICIDE2, "--option", "target=5").out.splitlines()
        assert head.split() == ["match", "seats", "totals", "places", "end"]
        assert "greedy first" in row

    def test_an_option_rules_the_match(self, shared: Home) -> None:
        [row] = shared.ok("match", "guillotine", *BOTS4, "--option", "deals_per_dealer=1", "--json").rows()
        [record] = shared.ok("export", row["match"], "--format", "record").rows()
        assert record["options"] == {"deals_per_dealer": 1}
        assert len(record["deals"]) == 4

    def test_the_seed_of_a_house_bot_is_kept(self, shared: Home) -> None:
        [row] = shared.ok("match", "guillotine", *BOTS4, "--option", "deals_per_dealer=1", "--json").rows()
        assert created(shared, row["match"])["seats"][2]["bot_seed"] == "3"

    def test_house_bots_without_a_seed_get_one_that_nobody_knows(self, shared: Home) -> None:
        [row] = shared.ok("match", "guillotine", *BOTS4, "--option", "deals_per_dealer=1", "--json").rows()
        seeds = [int(seat["bot_seed"]) for seat in created(shared, row["match"])["seats"]]
        assert len(set(seeds)) == 4
        assert min(seeds[:2]) > 2**32

    def test_clocks_and_label_are_kept(self, shared: Home) -> None:
        clocks = ("--allowance", "0.25", "--bank", "2", "--increment", "0.1", "--label", "round one")
        [row] = shared.ok("match", "regicide", *REGICIDE2, "--option", "target=1", *clocks, "--json").rows()
        spec = created(shared, row["match"])["spec"]
        times = {name: int(spec["clock"][f"{name}_ms"]) for name in ("allowance", "bank", "increment")}
        assert times == {"allowance": 250, "bank": 2000, "increment": 100}
        assert spec["label"] == "round one"

    def test_the_first_dealer_can_be_named(self, shared: Home) -> None:
        arguments = ("--first-dealer", 2, "--option", "deals_per_dealer=1")
        [row] = shared.ok("match", "guillotine", *BOTS4, *arguments, "--json").rows()
        [record] = shared.ok("export", row["match"], "--format", "record").rows()
        assert (record["first_dealer"], record["first_dealer_drawn"]) == (2, False)

    def test_not_waiting_prints_the_ids_alone(self, shared: Home) -> None:
        ids = shared.ok("match", "regicide", *REGICIDE2, "--matches", 3, "--no-wait").out.split()
        assert len(ids) == 3
        assert set(ids) <= {row["match"] for row in shared.ok("matches", "--json").rows()}

    def test_a_connected_agent_takes_a_named_seat(self, shared: Home, service: Service) -> None:
        agent = shared.agent("greedy", service.address, "anna", "--matches", "1")
        until(lambda: "anna" in shared.ok("agents", "list").out)
        [row] = shared.ok(
            "match", "regicide", "--seat", "agent:anna", "--seat", "first", "--option", "target=5", "--json"
        ).rows()
        assert row["seats"] == ["anna", "first"]
        assert agent.wait() == 0

    def test_an_open_seat_goes_to_whoever_comes(self, shared: Home, service: Service) -> None:
        waiting = shared.start("match", "regicide", "--seat", "open", "--seat", "first", "--option", "target=5")
        agent = shared.agent("greedy", service.address, "berta", "--matches", "1")
        assert waiting.wait() == 0
        assert "berta first" in waiting.output
        assert agent.wait() == 0

    def test_an_unknown_agent_is_told_apart_from_one_that_is_away(self, shared: Home) -> None:
        done = shared.run("match", "regicide", "--seat", "agent:nobody", "--seat", "first")
        assert done.code == 66
        assert "no agent 'nobody'" in done.err

    def test_the_same_agent_cannot_sit_twice(self, shared: Home, service: Service) -> None:
        shared.ok("agents", "add", "carla", "-o", str(shared.path / "carla.token"))
        done = shared.run("match", "regicide", "--seat", "agent:carla", "--seat", "agent:carla")
        assert (done.code, done.err) == (2, "referee: an agent takes one seat of a match\n")

    def test_ctrl_c_does_not_wait_for_the_match(self, shared: Home) -> None:
        waiting = shared.start("match", "regicide", "--seat", "open", "--seat", "first", "--label", "interrupted")
        until(lambda: "interrupted" in shared.ok("matches", "--json").out)
        assert waiting.stop(signal.SIGINT) == 130
        assert waiting.output.strip() == ""

    def test_a_cancelled_match_has_no_result(self, shared: Home) -> None:
        match_id = shared.ok("match", "regicide", "--seat", "open", "--seat", "open", "--no-wait").out.strip()
        assert shared.ok("cancel", match_id).out == f"cancelled {match_id}\n"
        [row] = [row for row in shared.ok("matches", "--json").rows() if row["match"] == match_id]
        assert (row["state"], row["totals"]) == ("cancelled", [])

    def test_who_waits_for_a_cancelled_match_learns_that_it_has_no_result(self, shared: Home) -> None:
        waiting = shared.start("match", "regicide", "--seat", "open", "--seat", "open", "--label", "to be cancelled")
        found = until(
            lambda: [row for row in shared.ok("matches", "--json").rows() if row["label"] == "to be cancelled"]
        )
        shared.ok("cancel", found[0]["match"])
        assert waiting.wait() == 1
        assert "not every match has a result" in waiting.output

    def test_a_match_is_cancelled_once(self, shared: Home) -> None:
        match_id = shared.ok("match", "regicide", "--seat", "open", "--seat", "open", "--no-wait").out.strip()
        shared.ok("cancel", match_id)
        done = shared.run("cancel", match_id)
        assert (done.code, done.err) == (2, "referee: the match has ended\n")

    def test_a_cancelled_match_verifies(self, shared: Home) -> None:
        match_id = shared.ok("match", "regicide", "--seat", "open", "--seat", "open", "--no-wait").out.strip()
        shared.ok("cancel", match_id)
        until(lambda: shared.ok("verify", match_id).out.startswith("verified"))

    def test_the_same_seed_is_not_played_twice(self, shared: Home) -> None:
        again = ("match", "regicide", *REGICIDE2, "--seed", "ab" * 32, "--option", "target=1")
        shared.ok(*again)
        done = shared.run(*again)
        assert done.code == 2
        assert "played from the same secret" in done.err


def test_a_seed_gives_the_same_matches_in_another_data_folder(home: Home) -> None:
    records = []
    for name in ("one", "two"):
        data = home.path / name
        service = home.serve(data=data)
        command = ("match", "guillotine", *BOTS4, "--seed", SEED, "--matches", 2, "--option", "deals_per_dealer=1")
        home.ok(*command, "--data", data)
        service.stop()
        records.append(home.ok("export", "--all", "--format", "record", "--data", data).rows())
        assert all("UNSEALED" in row["message"] for row in home.ok("verify", "--all", "--json", "--data", data).rows())
    one, two = ({row["match_id"]: row for row in rows} for rows in records)
    assert one == two
    assert len(one) == 2


class TestAgents:
    def test_an_agent_registers_when_it_first_connects(self, shared: Home, service: Service) -> None:
        agent = shared.agent("first", service.address, "doris")
        row = until(lambda: [row for row in shared.ok("agents", "list", "--json").rows() if row["name"] == "doris"])[0]
        assert list(row) == ["name", "agent_id", "state", "registered"]
        assert row["state"] == "connected"
        agent.stop(signal.SIGINT)
        until(lambda: "away" in shared.ok("agents", "list").out)

    def test_its_credential_is_readable_by_its_owner_alone(self, shared: Home, service: Service) -> None:
        shared.ok("agents", "add", "emma", "-o", str(shared.path / "emma.token"))
        path = shared.path / "emma.token"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(path.read_text(encoding="ascii").strip()) == 64

    def test_adding_never_writes_over_a_file(self, shared: Home, service: Service) -> None:
        path = shared.path / "precious"
        path.write_text("precious", encoding="ascii")
        done = shared.run("agents", "add", "fanny", "-o", path)
        assert (done.code, path.read_text(encoding="ascii")) == (2, "precious")
        assert "fanny" not in shared.ok("agents", "list").out

    def test_adding_a_name_twice_leaves_no_credential(self, shared: Home, service: Service) -> None:
        shared.ok("agents", "add", "gerda", "-o", str(shared.path / "gerda.token"))
        done = shared.run("agents", "add", "Gerda", "-o", str(shared.path / "again.token"))
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert not (shared.path / "again.token").exists()

    @pytest.mark.parametrize("name", ["../../outside", "a/b", "-rf", ".hidden", "CON", "%2e%2e"])
    def test_a_name_never_becomes_a_path(self, shared: Home, service: Service, name: str, tmp_path: Path) -> None:
        inner = tmp_path / "a" / "b" / "c"
        inner.mkdir(parents=True)
        done = shared.run("agents", "add", "--", name, cwd=inner)
        assert "Traceback" not in done.err
        assert [path.parent for path in tmp_path.rglob("*") if path.is_file()] == [inner] * (done.code == 0)

    def test_a_revoked_agent_is_put_out_and_stays_out(self, home: Home) -> None:
        service = home.serve()
        agent = home.agent("first", service.address, "hanna")
        until(lambda: "connected" in home.ok("agents", "list").out)
        assert home.ok("agents", "revoke", "hanna").out == "revoked hanna\n"
        assert agent.wait() == 77
        assert "credential" in agent.output
        assert home.agent("first", service.address, "hanna").wait() == 77

    def test_closed_registration_takes_only_agents_that_were_added(self, home: Home) -> None:
        service = home.serve("--registration", "closed", "--practice")
        stranger = home.agent("first", service.address, "stranger", "--matches", "1")
        assert stranger.wait() == 77
        assert "ask its host to add stranger" in stranger.output
        home.ok("agents", "add", "invited", "-o", "invited.token")
        invited = home.agent("first", service.address, "invited", "--credential", "invited.token", "--matches", "1")
        assert invited.wait() == 0
