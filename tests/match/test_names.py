from __future__ import annotations

import unicodedata

import pytest

from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.match.errors import RefusedError
from referee_server.match.names import MAX_LENGTH, check_name, fold_name

REFUSED = {
    "empty": "",
    "a space": " ",
    "NUL": "a\0b",
    "newline": "a\nb",
    "tab": "a\tb",
    "C1 control": "a\x85b",
    "DEL": "a\x7fb",
    "ANSI escape": "\x1b[31mred\x1b[0m",
    "right-to-left override": "abc\u202egnp.exe",
    "bidi isolate": "\u2066abc\u2069",
    "right-to-left mark": "abc\u200f",
    "zero width space": "a\u200bb",
    "zero width joiner": "a\u200db",
    "byte order mark": "\ufeffabc",
    "soft hyphen": "a\u00adb",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "private use": "a\ue000b",
    "unassigned": "a\u0378b",
    "language tag": "a\U000e0041b",
    "Hangul filler, which is a letter nobody sees": "\u3164",
    "halfwidth Hangul filler": "a\uffa0",
    "Braille blank": "\u2800",
    "combining grapheme joiner": "a\u034fb",
    "Khmer inherent vowel, which nobody sees": "a\u17b4",
    "Mongolian variation selector": "a\u180b",
    "space before": " anna",
    "space behind": "anna ",
    "no-break space behind": "anna\u00a0",
    "a thousand marks on one letter": "a" + "\u0301" * 1_000,
    "five marks on one letter": "q" + "\u0301" * 5,
    "five variation selectors": "a" + "\ufe0f" * 5,
    "marks alone": "\u0301",
    "65 letters": "x" * (MAX_LENGTH + 1),
    "a million letters": "x" * 1_000_000,
}


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED.keys())
def test_a_name_that_is_unsafe_to_show_is_refused(name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_name(name, "agent.name")
    assert refused.value.reason == reason_pb.ERROR_REASON_NAME_INVALID
    assert refused.value.metadata == {"field": "agent.name"}


@pytest.mark.parametrize("name", [value for value in REFUSED.values() if value.strip()])
def test_the_refusal_does_not_repeat_the_name(name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_name(name)
    assert refused.value.message.isascii()
    assert "x" * 65 not in refused.value.message


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "x" * MAX_LENGTH,
        "Anna Karenina",
        "Żółw",
        "Олена",
        "名前",
        "a-b_c.d",
        "🂡 ace",
        "<b>x</b>",
        "'; DROP --",
        "%s%n",
    ],
)
def test_a_name_that_people_can_read_is_taken_as_it_is(name: str) -> None:
    assert check_name(name) == name


def test_marks_do_not_count_towards_the_64() -> None:
    name = "n\u0303\u0323" * MAX_LENGTH
    assert len(unicodedata.normalize("NFD", check_name(name))) == 3 * MAX_LENGTH


def test_a_name_is_kept_composed() -> None:
    assert check_name("e\u0301") == "\u00e9"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna", "anna"),
        ("ANNA", "anna"),
        ("Straße", "STRASSE"),
        ("anna", "\u0430nn\u0430"),  # Cyrillic
        ("nora", "n\u03bfra"),  # Greek
        ("anna", "\uff41\uff4e\uff4e\uff41"),  # full width
        ("anna", "ánnà"),
        ("anna", "an na"),
        ("file", "\ufb01le"),
        ("bol", "b01"),
        ("anna", "anna\ufe0f"),
        ("anna", "an\ufe00na"),
        ("anna", "anna\u20dd"),
        ("\u00c5", "A\u030a"),
    ],
)
def test_names_that_read_the_same_are_compared_equal(one: str, other: str) -> None:
    assert fold_name(check_name(one)) == fold_name(check_name(other))


@pytest.mark.parametrize(("one", "other"), [("anna", "hanna"), ("bot-2", "bot-3"), ("名前", "名人"), ("a-b", "a_b")])
def test_names_that_read_differently_are_not_compared_equal(one: str, other: str) -> None:
    assert fold_name(check_name(one)) != fold_name(check_name(other))
