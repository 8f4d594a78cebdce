"""Text that others wrote never acts on a terminal, and stays what it was."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sayso_cli.errors import CliError
from sayso_cli.output import Format, document, one_line, parse_format, pretty, safe, span, table, timestamp

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Screen(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@given(st.text())
def test_no_text_keeps_a_character_that_a_terminal_acts_on(text: str) -> None:
    assert not [c for c in safe(text) if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]


@given(JSON)
def test_arguments_that_are_shown_are_still_the_same_json(value: object) -> None:
    assert json.loads(pretty(value, 4)) == value
    assert json.loads(one_line(value)) == value
    assert json.loads(document(value, Format.JSON)) == value


@given(JSON)
def test_yaml_says_what_json_says(value: object) -> None:
    assert yaml.safe_load(document({"value": value}, Format.YAML)) == {"value": value}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone", "\\u001b[2Jgone"),
        ("a\rb", "a\\u000db"),
        ("\x9b31m", "\\u009b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("two\nlines", "two\\u000alines"),
        ("größer 日本", "größer 日本"),
    ],
)
def test_a_control_character_is_shown_as_its_escape(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_a_table_takes_no_markup_from_its_cells() -> None:
    text = table(["TOOL"], [["[bold]refund[/bold] :warning:"]], stream=io.StringIO())
    assert "[bold]refund[/bold] :warning:" in text


def test_a_table_that_is_piped_has_one_line_for_each_row_however_long() -> None:
    text = table(["ID", "ARGUMENTS"], [["a", "x" * 5000], ["b", "y"]], stream=io.StringIO())
    assert [len(line.split()) for line in text.strip().split("\n")] == [2, 2, 2]


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    styles = {"STATE": lambda cell: "red"}
    assert "\x1b[" in table(["STATE"], [["rejected"]], styles, Screen())
    assert "\x1b[" not in table(["STATE"], [["rejected"]], styles, io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in table(["STATE"], [["rejected"]], styles, Screen())


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(CliError, match="table, wide, json, yaml") as caught:
        parse_format("jsn")
    assert caught.value.code == 2


def test_times_are_utc_and_lengths_are_short() -> None:
    assert timestamp(1_700_000_000.25) == "2023-11-14T22:13:20.250Z"
    assert timestamp(0) is None
    assert [span(s) for s in (-5, 59, 150, 7_300, 200_000)] == ["0s", "59s", "2m", "2h", "2d"]
