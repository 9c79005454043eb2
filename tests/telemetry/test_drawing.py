"""Does a drawn curve keep every spike, and does a link lead only where one can go?"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from app.actions.telemetry.on_demand import Range
from app.web.drawings.small_multiple import Line, Mark, Picture, draw, thinned, written
from app.web.telemetry.grafana import link
from app.web.telemetry.ranges import ranges_of

START = datetime(2026, 11, 2, 12, tzinfo=UTC)
END = START + timedelta(hours=2)
NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")


def walked(path: str) -> list[tuple[float, float]]:
    """Follow a path of relative steps."""
    first, _, rest = path[1:].partition("l")
    at = [float(one) for one in NUMBER.findall(first)]
    points = [(at[0], at[1])]
    steps = [float(one) for one in NUMBER.findall(rest)]
    for dx, dy in zip(steps[::2], steps[1::2], strict=True):
        points.append((points[-1][0] + dx, points[-1][1] + dy))
    return points


@pytest.mark.parametrize("fine", [2, 10])
def test_a_path_of_steps_ends_where_the_points_do(fine: int) -> None:
    points = [(6 + n * 0.73, 40 + (n * 37 % 11) * 3.3 - (n % 5) * 0.4) for n in range(300)]
    found = walked(written(points, fine))
    assert len(found) == len(points)
    for (x, y), (wanted_x, wanted_y) in zip(found, points, strict=True):
        assert abs(x - wanted_x) <= 0.51 / fine + 1e-6
        assert abs(y - wanted_y) <= 0.51 / fine + 1e-6


def test_a_level_run_is_one_step_and_a_lone_point_is_seen() -> None:
    assert written([(6, 40), (8, 40), (10, 40), (12, 41)], 10) == "M6 40l4 0 2 1"
    assert written([(6, 40)], 10) == "M5 40h2"
    assert written([(6, 40), (6.01, 40)], 10) == "M6 40h1"
    assert written([(0.5, 0.04), (0.2, 0.5)], 10) == "M.5 0l-.3 .5"


def picture(marks: list[Mark], lines: list[Line]) -> Picture:
    """Draw a thousand seconds."""
    return Picture(
        "k", "t", "d", 0.0, 1000.0, (600.0, 700.0), marks, [(100.0, 400.0)], lines, [], [], "1", "0"
    )  # fmt: skip


def test_no_spike_is_lost_however_many_others_there_are() -> None:
    samples = [(float(n) / 10, 5.0) for n in range(10_000)]
    samples[6_543] = (654.3, 99.0)
    crowd = [Line([samples], False) for _ in range(30)]
    whole = picture([], [*crowd, Line([samples], True)])
    for columns in (144, 24):
        assert (654.3, 99.0) in thinned(samples, whole, columns)
    assert len(draw(whole)) < 12_000


def test_marks_of_one_kind_on_one_pixel_are_drawn_once() -> None:
    marks = [Mark(500.0 + n / 1000, "ring") for n in range(50)] + [Mark(500.0, "action")]
    drawn = draw(picture(marks, []))
    assert drawn.count('stroke-dasharray="2 2"') == 1
    assert drawn.count('stroke-dasharray="1 2"') == 1
    assert drawn.count("f-band") == 1


@pytest.mark.parametrize(
    "address",
    [
        None, 7, "", "g-1.grafana-workspace.us-west-2.amazonaws.com", "javascript:alert(1)",
        "ftp://grafana.example/", "https://", "https://user:secret@grafana.example/",
        "https://grafana.example\\@evil.example/", "https://grafana.example/ x",
        "https://grafana.example:port/", "https://gräfana.example/",
        "http" + "://grafana.example:3000/",
    ],
)  # fmt: skip
def test_what_cannot_be_opened_is_no_link(address: object) -> None:
    assert link({"alpine": [{"grafana": address}]}, "alpine", "node-1", START, END) is None
    assert link({}, "alpine", "node-1", START, END) is None


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("https://grafana.example", "/d/aws-sm-hp-observability-cluster-v1_0"),
        ("https://proxy.example/grafana/", "/grafana/d/aws-sm-hp-observability-cluster-v1_0"),
        ("https://grafana.example/d/our-own", "/d/our-own"),
        ("http" + "://127.0.0.1:3000", "/d/aws-sm-hp-observability-cluster-v1_0"),
    ],
)
def test_a_link_names_dashboard_time_and_node(address: str, path: str) -> None:
    entries = {
        "alpine": [{"grafana": "nothing"}, {"grafana": f"{address}?var-cluster_id=4k2&from=1"}]
    }
    found = link(entries, "alpine", "hyperpod-i-1&x=2", START, END)
    assert found is not None
    parts = urlsplit(found.address)
    assert parts.path == path
    assert parse_qs(parts.query) == {
        "from": [str(int(START.timestamp() * 1000))], "to": [str(int(END.timestamp() * 1000))],
        "var-cluster_id": ["4k2"], "var-Hostname": ["hyperpod-i-1&x=2"],
    }  # fmt: skip
    unnamed = link(entries, "alpine", None, START, END)
    assert unnamed is not None
    assert "Hostname" not in unnamed.address


def test_times_beside_a_range_end_at_now() -> None:
    found = ranges_of(Range(START, END), END + timedelta(minutes=30))
    assert found.earlier == "from=2026-11-02T10%3A00%3A00Z&to=2026-11-02T12%3A00%3A00Z"
    assert found.later == "from=2026-11-02T12%3A30%3A00Z&to=2026-11-02T14%3A30%3A00Z"
    assert ranges_of(Range(START, END), END).later is None
