"""Are times, numbers and other people's names written as they should be?"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from app.web import words

NOW = datetime(2026, 11, 3, 23, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("at", "zone", "written"),
    [
        (datetime(2026, 11, 3, 15, 12, 14, tzinfo=UTC), ZoneInfo("UTC"), "15:12:14"),
        # In Berlin it is already the 4th.
        (datetime(2026, 11, 3, 15, 12, 14, tzinfo=UTC), BERLIN, "3 Nov 16:12:14"),
        (datetime(2026, 11, 3, 23, 5, tzinfo=UTC), BERLIN, "00:05:00"),
        (datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC), BERLIN, "1 Jan 00:59:59"),
        (datetime(2025, 7, 1, 10, tzinfo=UTC), BERLIN, "1 Jul 2025 12:00:00"),
    ],
)
def test_a_time_is_written_in_the_viewers_zone(at: datetime, zone: ZoneInfo, written: str) -> None:
    assert words.local(at, zone, NOW) == written


def test_a_time_keeps_utc_for_hovering_and_for_programs() -> None:
    tag = words.time_tag(datetime(2026, 11, 3, 15, 12, 14, 250_000, tzinfo=UTC), BERLIN, NOW)
    assert tag == (
        '<time datetime="2026-11-03T15:12:14.250000Z" title="2026-11-03 15:12:14.25 UTC">'
        "3 Nov 16:12:14</time>"
    )
    assert "not known" in words.time_tag(None, BERLIN, NOW)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (7 * 60 + 59, "7 min"),
        (3600, "1 h"),
        (3 * 3600 + 40 * 60, "3 h 40 min"),
        (35 * 3600, "1 d 11 h"),
        (30 * 86400 + 3600, "30 d"),
        (None, "not known"),
    ],
)
def test_a_length_of_time_has_two_units_at_most(seconds: float | None, written: str) -> None:
    assert words.duration(seconds) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (18412, "18,412"),
        (2**63, "9,223,372,036,854,775,808"),
        (0.8234, "0.823"),
        (0.00012345, "0.000123"),
        (1234.5, "1,234"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (None, "not known"),
    ],
)
def test_numbers(value: float | None, written: str) -> None:
    assert words.number(value) == written


def test_counts_have_a_noun() -> None:
    assert words.count(1, "alarm") == "1 alarm"
    assert words.count(2048, "entry", "entries") == "2,048 entries"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("hyperpod-i-0c0ffee0000000002", "<bdi>hyperpod-i-0c0ffee0000000002</bdi>"),
        ("a/../b", "<bdi>a/../b</bdi>"),
        ("<b>", "<bdi>&lt;b&gt;</bdi>"),
        (
            "job\u202egnp.exe",
            '<bdi title="job⟨U+202E⟩gnp.exe">job<span class="ctl">U+202E</span>gnp.exe</bdi>',
        ),
        ("a\x00b", '<bdi title="a⟨U+0000⟩b">a<span class="ctl">U+0000</span>b</bdi>'),
        ("a\u00a0b", '<bdi title="a⟨U+00A0⟩b">a<span class="ctl">U+00A0</span>b</bdi>'),
        ("\ud800", '<bdi title="⟨U+D800⟩"><span class="ctl">U+D800</span></bdi>'),
        ("узел-7", "<bdi>узел-7</bdi>"),
        ("", '<span class="faint">not known</span>'),
        (None, '<span class="faint">not known</span>'),
    ],
)
def test_a_foreign_name_is_kept_apart_and_shows_everything(name: str | None, written: str) -> None:
    assert words.name_tag(name) == written


def test_a_long_name_is_cut_and_stands_whole_in_the_title() -> None:
    name = "n" * 500
    tag = words.name_tag(name, 20)
    assert tag == f'<bdi title="{name}">{"n" * 19}…</bdi>'


def test_unknown_zones_are_utc() -> None:
    for name in (None, "", "Mars/Olympus", "../../../etc/passwd", "/etc/localtime"):
        assert words.zone(name).key == "UTC"


def test_short_uuid() -> None:
    assert words.short_uuid("GPU-e2890f29-b3c7-2963-7634-9739d01e820b") == "e2890f29"
