"""What an entry of toolNames or requireApproval covers."""

from __future__ import annotations

import fnmatch
import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sayso_api import globs

LETTERS = "ab_."
entries = st.text(LETTERS + "*?", max_size=8)
names = st.text(LETTERS, max_size=8)


@given(entries, names)
@example("*a*b", "aab")
@example("", "")
def test_a_glob_covers_what_the_shell_says_it_covers(entry: str, name: str) -> None:
    assert globs.matches(entry, name) == fnmatch.fnmatchcase(name, entry)


@given(names, names)
def test_an_entry_without_wildcards_covers_itself_only(entry: str, name: str) -> None:
    assert globs.matches(entry, name) == (entry == name)
    assert not globs.is_glob(entry)


@given(entries, entries, names)
def test_two_entries_that_cover_one_name_intersect(one: str, other: str, name: str) -> None:
    if globs.matches(one, name) and globs.matches(other, name):
        assert globs.intersects(one, other)


@given(entries, entries)
def test_whether_two_entries_intersect_does_not_depend_on_their_order(one: str, other: str) -> None:
    assert globs.intersects(one, other) == globs.intersects(other, one)


@given(entries, names)
def test_beside_a_plain_name_intersecting_is_covering(entry: str, name: str) -> None:
    assert globs.intersects(entry, name) == globs.matches(entry, name)


@given(st.text("ab*?", max_size=4), st.text("ab*?", max_size=4))
def test_entries_intersect_only_when_some_name_is_covered_by_both(one: str, other: str) -> None:
    short_names = ("".join(letters) for size in range(5) for letters in itertools.product("abc", repeat=size))
    witness = any(globs.matches(one, name) and globs.matches(other, name) for name in short_names)
    # The shortest common name is no longer than both entries together without their stars.
    shortest = sum(character != "*" for character in one + other)
    if globs.intersects(one, other) and shortest <= 4:
        assert witness
    if witness:
        assert globs.intersects(one, other)


@pytest.mark.parametrize(
    ("entry", "name", "covered"),
    [
        ("cancel_*", "cancel_order", True),
        ("cancel_*", "cancel_", True),
        ("cancel_*", "Cancel_order", False),
        ("cancel_?", "cancel_", False),
        ("*", "", True),
        ("?", "ab", False),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("a\nb*", "a\nbc", True),
        ("refund", "refund\n", False),
        ("*.refund", "shop.refund", True),
    ],
)
def test_wildcards_are_star_and_question_mark_and_nothing_else(entry: str, name: str, covered: bool) -> None:
    assert globs.matches(entry, name) is covered


def test_a_hostile_entry_is_matched_without_backtracking_without_end() -> None:
    steps = 0

    class Counted(str):
        __slots__ = ()

        def __getitem__(self, index: object) -> str:
            nonlocal steps
            steps += 1
            return str.__getitem__(self, index)  # type: ignore[index]

    assert not globs.matches("*a" * 60 + "b", Counted("a" * 500))
    assert 0 < steps < 500 * 200


def test_the_first_entry_that_covers_a_name_is_the_one_that_is_named() -> None:
    assert globs.first_match(["refund", "re*", "*"], "resend") == "re*"
    assert globs.first_match(["refund"], "resend") is None
