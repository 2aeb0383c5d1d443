"""What may stand in a tournament's file, and that everything wrong with one is said at once and at its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.v1 import match_pb2
from referee_server.tournament.cupfile import CupError, parse_cup

PLAIN = """
name = "cup"
game = "guillotine"
[[entrant]]
name = "a"
bot = "greedy"
"""


def problems(text: str) -> list[str]:
    with pytest.raises(CupError) as caught:
        parse_cup(text)
    return [str(problem) for problem in caught.value.problems]


def paths(text: str) -> set[str]:
    return {problem.partition(":")[0] for problem in problems(text)}


def test_what_is_left_out_has_its_default() -> None:
    cup = parse_cup(PLAIN)
    assert (cup.format.kind, cup.mode, cup.running.concurrency) == ("round_robin", "rotation", 8)
    spec = cup.match_spec()
    assert spec.clock.allowance_ms == 5_000
    assert spec.policy.strikes == 3
    assert spec.auto_play == match_pb2.AUTO_PLAY_PUBLIC


def test_every_setting_of_a_match_can_be_set() -> None:
    spec = parse_cup(
        PLAIN
        + """
        [clock]
        allowance_ms = 100
        bank_ms = 0
        [faults]
        strikes = 1
        replacement_bot = "random"
        illegal = { action = "forfeit", ask_again = 2 }
        timeout = { bot = "first", strike = false }
        [running]
        auto_play = false
        """
    ).match_spec()
    rules = {match_pb2.FaultKind.Name(rule.kind): rule for rule in spec.policy.rules}
    assert (spec.clock.allowance_ms, spec.clock.bank_ms, spec.policy.strikes) == (100, 0, 1)
    assert rules["FAULT_KIND_ILLEGAL"].action == match_pb2.FAULT_ACTION_FORFEIT
    assert rules["FAULT_KIND_ILLEGAL"].ask_again_count == 2
    assert (rules["FAULT_KIND_TIMEOUT"].bot, rules["FAULT_KIND_TIMEOUT"].strike) == ("first", False)
    assert spec.auto_play == match_pb2.AUTO_PLAY_NEVER


def test_mistakes_of_form_are_all_named_with_their_places() -> None:
    found = paths(
        """
        name = "x\\u0007"
        game = "gilotine"
        ratng = 1
        [clock]
        allowance_ms = "fast"
        [[entrant]]
        name = "a"
        command = "python b.py"
        [[entrant]]
        name = "A"
        bot = "greedi"
        "weird key" = 1
        """
    )
    assert found == {
        "name",
        "game",
        "ratng",
        "clock.allowance_ms",
        "entrant.0.command",
        "entrant.1.bot",
        "entrant.1.'weird key'",
        "entrant.1.name",
    }


def test_mistakes_of_meaning_are_all_named_with_their_places() -> None:
    found = paths(
        """
        name = "x"
        game = "guillotine"
        [options]
        deal = 3
        [clock]
        allowance_ms = -5
        bank_ms = -1
        [faults.illegal]
        ask_again = 99
        [faults.timeout]
        bot = "nobody"
        [[entrant]]
        name = "a"
        command = [""]
        env = { REFEREE_NAME = "me", "a b" = "" }
        [[entrant]]
        name = "A"
        bot = "greedy"
        remote = "z"
        folder = "x"
        [[entrant]]
        name = "c"
        [stop]
        better = "q"
        than = "a"
        """
    )
    assert found == {
        "options.deal",
        "clock.allowance_ms",
        "clock.bank_ms",
        "faults.illegal.ask_again",
        "faults.timeout.bot",
        "entrant.0.command",
        "entrant.0.env",
        "entrant.0.env.REFEREE_NAME",
        "entrant.1.name",
        "entrant.1",
        "entrant.1.folder",
        "entrant.2",
        "stop.better",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "name: it is needed"),
        ("a = ", "not TOML"),
        ("name = 'x'\ngame = 'guillotine'\nentrant = []", "entrant: "),
        (PLAIN + "[format]\nkind = 'league'", "format.kind: "),
        (PLAIN + "[running]\nconcurrency = 0", "running.concurrency: "),
        (PLAIN + "[duplicate]\nmode = 'once'\ntrust_memory = true", "duplicate.trust_memory: "),
        (PLAIN.replace("name = 'a'", "") + "[[entrant]]\nname = ''\nbot = 'first'", "entrant.1.name: a name has"),
        (PLAIN + f"[[entrant]]\nname = '{'n' * 10_000}'\nbot = 'first'", "entrant.1.name: a name has"),
        (PLAIN + "[[entrant]]\nname = 'b'\nremote = ''", "entrant.1.remote: "),
        (PLAIN + "[clock]\nuntimed = true\nbank_ms = 5", "bank_ms has no meaning in an untimed match"),
        ("seed = 'ABC'\n" + PLAIN, "seed: a seed is 64 hex digits"),
        ("first_dealer = 4\n" + PLAIN, "first_dealer: it is a seat from 0 to 3"),
        (PLAIN + "[clock]\nallowance_ms = 9223372036854775808", "clock.allowance_ms: "),
        (PLAIN + "[faults.flood]\naction = 'substitute'", "faults.flood.action: "),
    ],
)
def test_each_mistake_is_said_where_it_is(text: str, said: str) -> None:
    assert any(said in problem for problem in problems(text)), problems(text)


REMOTE = PLAIN + "[[entrant]]\nname = 'far'\nremote = 'far'\n"
LOCAL = PLAIN + "[[entrant]]\nname = 'near'\ncommand = ['./bot']\n"


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (PLAIN, "rotation"),
        (LOCAL, "rotation"),
        (LOCAL + "fresh = false", "once"),
        (REMOTE, "once"),
        (REMOTE + "[duplicate]\ntrust_memory = true", "rotation"),
        (PLAIN + "[duplicate]\nmode = 'none'", "none"),
    ],
)
def test_entrants_that_might_remember_are_not_given_the_same_cards_twice(text: str, mode: str) -> None:
    assert parse_cup(text).mode == mode


@pytest.mark.parametrize("text", [REMOTE, LOCAL + "fresh = false\n"])
def test_rotation_with_entrants_that_might_remember_has_to_be_said_outright(text: str) -> None:
    assert paths(text + "[duplicate]\nmode = 'rotation'") == {"entrant.1"}
    assert parse_cup(text + "[duplicate]\nmode = 'rotation'\ntrust_memory = true").mode == "rotation"


@pytest.mark.parametrize(("extra", "fresh"), [("", True), ("fresh = false", False)])
def test_a_program_is_started_anew_for_every_table_where_cards_come_again(extra: str, fresh: bool) -> None:
    assert parse_cup(LOCAL + extra).is_fresh(1) is fresh


def test_regicide_in_duplicate_plays_a_fixed_number_of_deals() -> None:
    text = PLAIN.replace("guillotine", "regicide")
    options = parse_cup(text).game_options
    assert (options["max_deals"], options["target"]) == (24, 1_000_000)
    plain = parse_cup(text + "[duplicate]\nmode = 'none'").game_options
    assert (plain["max_deals"], plain["target"]) == (500, 50)
    assert parse_cup(text + "[options]\nmax_deals = 5").game_options["max_deals"] == 5


@given(st.text(max_size=200))
def test_any_text_is_a_tournament_or_is_refused_with_reasons(text: str) -> None:
    said = ["well"]
    try:
        parse_cup(text)
    except CupError as error:
        said = [problem.message for problem in error.problems]
    assert said
    assert all(said)
