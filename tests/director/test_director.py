"""What a director has played next, and what it puts on record, whoever plays it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from director.kit import SEED, Club, Stand, cup, settle
from referee_server.director.director import Director
from referee_server.director.executor import Entry, Offer, Player
from referee_server.director.orders import order_for
from referee_server.match.errors import RefusedError
from referee_server.tournament.book import Book
from referee_server.tournament.cupfile import CupError, entrant_of
from referee_server.tournament.table import lines_of

MASTER = bytes.fromhex(SEED)
FOUR = ("first", "random", "stride", "greedy")


@pytest.fixture
async def stand() -> Stand:
    return Stand()


@pytest.fixture
async def club(stand: Stand) -> AsyncIterator[Club]:
    made = Club(make=lambda book: stand)
    yield made
    await made.close()


async def started(club: Club, toml: str) -> Director:
    tournament_id = await club.tournaments.create(toml)
    director = club.tournaments.start(tournament_id)
    await settle()
    return director


async def test_no_more_tables_are_at_play_than_asked_for(club: Club, stand: Stand) -> None:
    director = await started(club, cup(*FOUR, running="concurrency = 3", format="sets = 4"))
    while stand.open:
        assert len(director.playing) <= 3
        stand.end(stand.open[0])
        await settle()
    assert stand.at_once == 3
    assert director.book.state == "FINISHED"


async def test_tables_begin_in_the_order_of_the_schedule(club: Club, stand: Stand) -> None:
    await started(club, cup(*FOUR, running="concurrency = 2"))
    begun = []
    while stand.open:
        begun += [number for number in stand.orders if number not in begun]
        stand.end(min(stand.open))
        await settle()
    assert begun == sorted(begun)


async def test_one_entrant_that_never_moves_does_not_keep_the_others_from_playing(club: Club, stand: Stand) -> None:
    director = await started(club, cup(*FOUR, *FOUR, running="concurrency = 4", format="sets = 8"))
    for _ in range(2_000):
        others = [number for number in stand.open if 0 not in stand.orders[number].table.seats]
        if not others:
            break
        stand.end(others[0])
        await settle()
    waiting = {entrant for number in stand.open for entrant in stand.orders[number].table.seats}
    assert sum(0 in stand.orders[number].table.seats for number in stand.open) == 3
    assert len(waiting) == 2
    left = [table for table in director.book.unplayed() if not waiting & set(table.seats)]
    assert left == []


async def test_a_table_that_the_referee_failed_is_played_again_and_counts_once(club: Club, stand: Stand) -> None:
    director = await started(club, cup("first", "random"))
    first = stand.orders[0].match_id
    stand.end(0, "referee_fault")
    await settle()
    assert stand.orders[0].key.attempt == 2
    assert stand.orders[0].match_id != first
    stand.end(0)
    stand.end(1)
    await settle()
    assert director.book.state == "FINISHED"
    assert [line.played for line in lines_of(director.book, resamples=0)] == [2, 2]


async def test_a_table_that_fails_again_and_again_ends_without_a_result(club: Club, stand: Stand) -> None:
    director = await started(club, cup("first", "random", running="attempts = 2"))
    for _ in range(2):
        stand.end(0, "referee_fault")
        await settle()
    stand.end(1)
    await settle()
    assert director.book.state == "FINISHED"
    assert [outcome.reason for outcome in director.book.counted] == ["referee_fault", "completed"]


@pytest.mark.parametrize(("mode", "same"), [("rotation", True), ("none", False)])
async def test_a_second_attempt_has_the_cards_of_its_set_and_others_outside_of_sets(
    club: Club, stand: Stand, mode: str, same: bool
) -> None:
    await started(club, cup("first", "random", duplicate=f'mode = "{mode}"'))
    first = stand.orders[0]
    stand.end(0, "referee_fault")
    await settle()
    assert (stand.orders[0].secret == first.secret) is same


async def test_where_cards_are_met_once_a_failed_table_is_not_played_again(club: Club, stand: Stand) -> None:
    director = await started(club, cup("first", "random", duplicate='mode = "once"'))
    stand.end(0, "referee_fault")
    await settle()
    assert director.book.outcomes[0].reason == "referee_fault"


async def test_the_cards_of_a_set_are_revealed_when_its_last_table_has_ended(club: Club, stand: Stand) -> None:
    await started(club, cup("first", "random", format="sets = 2"))
    tables = {number: order.table.board for number, order in stand.orders.items()}
    one = [number for number, board in tables.items() if board == 0]
    stand.end(one[0])
    await settle()
    assert club.revealed == []
    stand.end(one[1])
    await settle()
    assert sorted(club.revealed) == sorted(stand.orders[number].match_id for number in one)


async def test_tables_of_one_set_have_one_secret_and_others_others(club: Club, stand: Stand) -> None:
    await started(club, cup("first", "random", format="sets = 3"))
    secrets = {(order.key.board, order.secret, order.deal_id) for order in stand.orders.values()}
    assert len(secrets) == 3
    assert len({secret for _, secret, _ in secrets}) == 3
    assert len({order.match_id for order in stand.orders.values()}) == 6


async def test_a_paused_tournament_starts_nothing_and_goes_on_where_it_was(club: Club, stand: Stand) -> None:
    director = await started(club, cup(*FOUR, running="concurrency = 1"))
    await director.pause()
    stand.end(0)
    await settle()
    assert stand.open == []
    assert director.book.state == "PAUSED"
    await director.go_on()
    await settle()
    assert stand.open == [1]


async def test_a_drained_tournament_ends_its_run_with_what_is_at_play_and_is_not_over(club: Club, stand: Stand) -> None:
    director = await started(club, cup(*FOUR, running="concurrency = 2"))
    director.drain()
    await settle()
    for number in list(stand.open):
        stand.end(number)
    await club.tournaments.wait(director.book.tournament_id)
    assert len(director.book.outcomes) == 2
    assert not director.book.over
    assert stand.closed


async def test_a_cancelled_tournament_cancels_its_tables_and_reveals_its_master_secret(
    club: Club, stand: Stand
) -> None:
    director = await started(club, cup(*FOUR, running="concurrency = 2"))
    at_play = {stand.orders[number].match_id for number in stand.open}
    await club.tournaments.cancel(director.book.tournament_id)
    assert at_play <= set(stand.cancelled)
    assert at_play <= set(club.revealed)
    assert director.book.state == "CANCELLED"
    assert director.book.ended is not None
    assert director.book.ended.master_secret == bytes(31) + b"\1"


async def test_after_a_kill_the_next_director_orders_what_is_missing_with_the_same_ids(
    club: Club, stand: Stand
) -> None:
    director = await started(club, cup(*FOUR, running="concurrency = 2"))
    stand.end(0)
    await settle()
    orders = {number: (order.match_id, order.secret) for number, order in stand.orders.items()}
    later = Stand()
    again = Club(club.journal, make=lambda book: later)
    again.tournaments.resume_all()
    await settle()
    assert 0 not in later.orders
    assert {number: (order.match_id, order.secret) for number, order in later.orders.items()} == {
        number: orders[number] for number in (1, 2)
    }
    await again.close()
    assert director.book.outcomes.keys() == {0}


async def test_what_was_revealed_before_a_kill_is_revealed_again_for_it_may_not_have_come_to_it(
    club: Club, stand: Stand
) -> None:
    await started(club, cup("first", "random", format="sets = 2"))
    for number in (0, 1):
        stand.end(number)
    await settle()
    later = Stand()
    again = Club(club.journal, make=lambda book: later)
    again.tournaments.resume_all()
    await settle()
    assert again.revealed == club.revealed
    await again.close()


async def test_tables_that_were_at_play_when_it_was_killed_count_among_those_that_may_be(
    club: Club, stand: Stand
) -> None:
    director = await started(club, cup(*FOUR, running="concurrency = 4", format="sets = 2"))
    tables = [table for table in director.book.scheduler.tables if table.number in (7, 9, 11)]
    later = Stand()
    again = Club(club.journal, make=lambda book: later)
    again.tournaments.still_at_play = frozenset(order_for(director.book, MASTER, table).match_id for table in tables)
    again.tournaments.start(director.book.tournament_id)
    await settle()
    assert set(later.orders) == {0, 7, 9, 11}
    assert later.at_once == 4
    await again.close()


STOP = 'better = "e0"\nthan = "e1"\neffect = 1.0'


async def play_all(stand: Stand, order: int) -> None:
    """Ends tables until none is open; always that at a place of the open ones, as from `order`."""
    while stand.open:
        number = stand.open[order % len(stand.open)]
        # Ahead at most sets, or the differences would have no spread.
        seats = stand.orders[number].table.seats
        level = stand.orders[number].key.board % 5 == 0
        stand.end(number, places=tuple(1 if level or seat == 0 else 2 for seat in seats))
        await settle()


@pytest.mark.parametrize("order", [0, 1, 5])
async def test_the_stopping_rule_ends_it_at_the_same_board_set_whatever_ends_first(
    club: Club, stand: Stand, order: int
) -> None:
    director = await started(club, cup("first", "random", format="sets = 200", stop=STOP))
    await play_all(stand, order)
    book = director.book
    assert book.state == "FINISHED"
    assert book.stopping is not None
    assert book.stopping.verdict == "better"
    assert book.ended is not None
    assert "e0 is better than e1 at 95% confidence" in book.ended.note
    assert book.stopping.through is not None
    assert len(book.counted) == 2 * (book.stopping.through + 1)
    assert book.stopping.through == 20


async def test_an_entrant_that_leaves_is_in_no_round_that_was_not_paired(club: Club, stand: Stand) -> None:
    director = await started(club, cup(*FOUR, format='kind = "swiss"\nrounds = 3'))
    await director.withdraw(3)
    while stand.open:
        stand.end(stand.open[0])
        await settle()
    rounds = {table.round for table in director.book.scheduler.tables if 3 in table.seats}
    assert rounds == {0}
    assert [line.withdrawn for line in lines_of(director.book, resamples=0) if line.entrant == 3] == [True]


async def test_who_comes_late_is_in_the_rounds_that_follow(club: Club, stand: Stand) -> None:
    director = await started(club, cup(*FOUR[:3], format='kind = "ladder"\nrounds = 4', duplicate='mode = "none"'))
    await director.enter(entrant_of(director.book.cup, "late", "bot", "greedy"))
    while stand.open:
        stand.end(stand.open[0])
        await settle()
    assert {table.round for table in director.book.scheduler.tables if 3 in table.seats} <= {1, 2, 3}
    assert any(3 in table.seats for table in director.book.scheduler.tables)
    read = Book.read(club.journal.tournament_log(director.book.tournament_id))
    assert [entrant.name for entrant in read.cup.entrant] == ["e0", "e1", "e2", "late"]


@pytest.mark.parametrize(
    ("name", "kind", "value"), [("E0", "bot", "greedy"), ("x\0", "bot", "greedy"), ("x", "bot", "?")]
)
async def test_who_cannot_enter_is_refused_with_the_reason(
    club: Club, stand: Stand, name: str, kind: str, value: str
) -> None:
    director = await started(club, cup(*FOUR))
    with pytest.raises(CupError):
        entrant_of(director.book.cup, name, kind, value)


async def test_one_that_may_remember_does_not_enter_a_rotation_late(club: Club, stand: Stand) -> None:
    director = await started(club, cup(*FOUR))
    with pytest.raises(CupError, match="remember"):
        entrant_of(director.book.cup, "far", "remote", "far")


async def test_the_log_alone_tells_the_tournament(club: Club, stand: Stand) -> None:
    director = await started(club, cup(*FOUR))
    while stand.open:
        stand.end(stand.open[0])
        await settle()
    read = Book.read(club.journal.tournament_log(director.book.tournament_id))
    assert read.counted == director.book.counted
    assert read.state == director.book.state == "FINISHED"
    assert lines_of(read) == lines_of(director.book)


async def test_a_repeat_of_a_request_makes_no_second_tournament(club: Club) -> None:
    first = await club.tournaments.create(cup("first", "random", seed=None), "request")
    assert await club.tournaments.create(cup("first", "random", seed=None), "request") == first
    with pytest.raises(RefusedError, match="another request"):
        await club.tournaments.create(cup("first", "greedy", seed=None), "request")


async def test_a_seed_is_good_for_one_tournament(club: Club) -> None:
    await club.tournaments.create(cup("first", "random"))
    with pytest.raises(CupError, match="same seed"):
        await club.tournaments.create(cup("first", "random"))


async def test_a_tournament_that_has_ended_is_not_started_again(club: Club, stand: Stand) -> None:
    director = await started(club, cup("first", "random"))
    for number in list(stand.open):
        stand.end(number)
    await club.tournaments.wait(director.book.tournament_id)
    with pytest.raises(RefusedError, match="has ended"):
        club.tournaments.start(director.book.tournament_id)


async def test_ids_of_tables_tell_nothing_without_the_master_secret(club: Club, stand: Stand) -> None:
    director = await started(club, cup("first", "random"))
    table = director.book.scheduler.tables[0]
    assert order_for(director.book, b"\1" * 32, table).match_id != order_for(director.book, b"\2" * 32, table).match_id


async def test_a_failure_of_the_executor_ends_the_run_and_can_be_gone_on_with(club: Club, stand: Stand) -> None:
    director = await started(club, cup("first", "random"))
    stand._results[0].set_exception(RuntimeError("the cluster is gone"))
    with pytest.raises(RuntimeError, match="the cluster is gone"):
        await club.tournaments.wait(director.book.tournament_id)
    assert director.book.state == "RUNNING"
    assert club.tournaments.running == {}
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_one_that_was_started_and_waits_for_its_agents_is_taken_up_at_the_next_start(club: Club) -> None:
    waiting = await club.tournaments.create(cup("first", "random", seed="aa" * 32))
    asked = await club.tournaments.create(cup("first", "random", seed="bb" * 32), "two")

    class Slow(Stand):
        async def prepare(self, players: Sequence[Player], offer: Offer | None) -> tuple[Entry, ...]:
            await asyncio.Event().wait()
            return ()

    slow = Club(club.journal, make=lambda book: Slow())
    await slow.tournaments.go_on(asked)
    await slow.close()
    again = Club(club.journal, make=lambda book: Stand())
    assert again.tournaments.resume_all() == 1
    assert set(again.tournaments.running) == {asked}
    assert again.tournaments.book(waiting).state == "WAITING"
    await again.close()


async def test_byes_that_are_worth_nothing_are_no_tables_at_which_nothing_was_won(club: Club, stand: Stand) -> None:
    director = await started(club, cup(*FOUR[:3], format="sets = 4", running="concurrency = 1"))
    for _ in range(4):
        stand.end(stand.open[0])
        await settle()
    for line in lines_of(director.book, resamples=0):
        assert line.mean.value == (line.place_points / line.played if line.played else 0)


async def test_what_no_longer_follows_once_it_is_its_turn_is_not_put_on_record(club: Club, stand: Stand) -> None:
    director = await started(club, cup(*FOUR))
    late = entrant_of(director.book.cup, "late", "bot", "greedy")
    both = await asyncio.gather(director.enter(late), director.enter(late), return_exceptions=True)
    assert [type(one) for one in both] == [type(None), CupError]
    await asyncio.gather(director.withdraw(4), director.withdraw(4), director.pause(), director.pause())
    director.cancel()
    await asyncio.gather(director.go_on(), director.withdraw(1), director.pause(), return_exceptions=True)
    await asyncio.wait_for(club.tournaments.wait(director.book.tournament_id), 10)
    await director.pause()
    await director.withdraw(2)
    read = Book.read(club.journal.tournament_log(director.book.tournament_id))
    assert read.state == "CANCELLED"
    assert [entrant.name for entrant in read.cup.entrant][4:] == ["late"]


async def test_of_two_requests_that_come_together_the_second_gets_the_answer_of_the_first(club: Club) -> None:
    toml = cup("first", "random", seed=None)
    first, second = await asyncio.gather(*(club.tournaments.create(toml, "request") for _ in range(2)))
    assert first == second
    seeded = cup("first", "random")
    both = await asyncio.gather(*(club.tournaments.create(seeded) for _ in range(2)), return_exceptions=True)
    assert [isinstance(one, CupError) for one in both] == [False, True]
    assert club.hall.committer.failed is None
    assert len(club.tournaments.rows()) == 2
