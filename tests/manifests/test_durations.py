"""Lengths of time in manifests."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso_api import durations

whole_seconds = st.integers(1, 1_000_000 * 3600 - 1).map(lambda seconds: timedelta(seconds=seconds))


@given(whole_seconds)
def test_a_length_that_is_written_reads_as_itself(length: timedelta) -> None:
    assert durations.parse(durations.write(length)) == length


@given(st.integers(0, 999), st.integers(0, 999_999), st.integers(0, 999_999))
def test_hours_minutes_and_seconds_add_up(hours: int, minutes: int, seconds: int) -> None:
    text = f"{hours}h{minutes}m{seconds}s"
    if hours or minutes or seconds:
        assert durations.parse(text) == timedelta(hours=hours, minutes=minutes, seconds=seconds)
    else:
        with pytest.raises(ValueError, match="above zero"):
            durations.parse(text)


@given(st.text(max_size=6))
def test_any_other_text_is_refused_or_means_what_is_written_back(text: str) -> None:
    try:
        length = durations.parse(text)
    except ValueError:
        return
    assert durations.parse(durations.write(length)) == length


@pytest.mark.parametrize(
    ("text", "seconds"), [("24h", 86_400), ("30m", 1800), ("90s", 90), ("1h30m", 5400), ("1h1s", 3601)]
)
def test_the_forms_that_people_write_are_understood(text: str, seconds: int) -> None:
    assert durations.parse(text).total_seconds() == seconds


@pytest.mark.parametrize(
    "text",
    ["", "30", "1d", "30m1h", "1h1h", "0s", "0h0m", "-1h", "1.5h", "1 h", "1H", "1h\n", "٣h", "1000000h", "9999999s"],
)
def test_a_length_without_unit_sign_order_or_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="24h, 30m, 90s or 1h30m"):
        durations.parse(text)


@pytest.mark.parametrize("length", [timedelta(0), timedelta(seconds=-1), timedelta(milliseconds=1500), timedelta.max])
def test_a_length_that_has_no_such_form_is_not_written(length: timedelta) -> None:
    with pytest.raises(ValueError, match="whole seconds"):
        durations.write(length)
