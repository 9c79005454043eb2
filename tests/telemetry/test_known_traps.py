"""What does an operator see where answers of a metrics source are easily read wrongly?

Each answer lies in a real Prometheus, the alarm is posted, and the alarm, its page and the GPU's
page are read over HTTP.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from app.store import ids
from app.web.words import ident
from tests.actions.service import Person, Service
from tests.pages_timeline.fleet import CASES, culprit, passes, rank_map
from tests.prometheus import Prometheus
from tests.sources.conftest import Troubled, failure, matrix, troubled
from tests.telemetry.conftest import rounds

__all__ = ["troubled"]

ANSWERS = Path(__file__).resolve().parent.parent / "data" / "telemetry"
SUSPECT = "GPU-a0000002-1111-4222-8333-000000000005"
PAGE = "/gpus/" + ident(ids.derive("gpu", SUSPECT))
RANGE = {"from": "2026-03-02T10:00:00Z", "to": "2026-03-02T10:30:00Z"}
GREEN = re.compile(r"\b(healthy|clean|innocent|cleared|recovered)\b", re.I)


@dataclass(frozen=True)
class Seen:
    """What is shown of one alarm: as JSON, the alarm's words, the GPU page's words and source."""

    telemetry: dict[str, Any]
    alarm: str
    gpu: str
    source: str
    samples: dict[str, Any]

    @property
    def numbers(self) -> list[float]:
        """List the suspect's readings of all its series."""
        return [v for one in self.samples["series"] for v in one["values"] if v is not None]


def answer(name: str) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
    """Read a stored answer as series to write."""
    document = json.loads((ANSWERS / f"{name}.json").read_text())
    return [
        (one["metric"], [(float(at), float(value)) for at, value in one["values"]])
        for one in document["data"]["result"]
    ]


def text_of(page: str, anchor: str) -> str:
    section = page.split(f'id="{anchor}"')[1].split("</section>", maxsplit=1)[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", section)).split())


def strict(text: str) -> Any:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} in an answer")

    return json.loads(text, parse_constant=refuse)


def look(service: Service, alarm: str, person: Person | None = None) -> Seen:
    person = person or service.person("viewer")
    page = person.get(f"{PAGE}?from={RANGE['from']}&to={RANGE['to']}")
    whole = strict(person.get(f"/api/v1/alarms/{alarm}"))
    samples = strict(person.http.get(f"/api/v1{PAGE}/telemetry", params=RANGE).text)
    words = text_of(page, "tele")
    around = text_of(person.get(f"/alarms/{alarm}"), "dcgm")
    for shown in (words, around, json.dumps(whole["telemetry"])):
        assert not GREEN.search(shown), shown
    section = page.split('id="tele"')[1].split("</section>", maxsplit=1)[0]
    return Seen(whole["telemetry"], around, words, section, samples)


def around(
    serve: Callable[..., Service], prometheus: Prometheus, name: str, *before: dict[str, Any]
) -> Seen:
    """Store an answer, post the alarm, pull, and look."""
    prometheus.write(answer(name))
    service = serve({"url": prometheus.url})
    posted = service.post(rank_map(), *before, culprit())
    rounds(service)
    return look(service, str(posted[-1]["id"]))


def test_blanks_are_gaps_and_never_numbers(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    prometheus.write(answer("blank_values"))
    service = serve({"url": prometheus.url})
    posted = service.post(rank_map(), culprit())
    rounds(service)
    person = service.person("viewer")
    seen = look(service, str(posted[-1]["id"]), person)
    assert seen.telemetry["state"] == "nothing_found"
    assert not any(one["risen"] for one in seen.telemetry["readings"][0]["observations"])
    assert max(seen.numbers) == 43.0
    by_field = {one["field_id"]: one for one in seen.samples["series"]}
    assert by_field[150]["values"] == [41, 42, None, None, 42, 43]
    assert by_field[202]["values"] == [3, 3, None, 3, None, 3]
    assert by_field[202]["rise"] == 0
    assert "2 samples say “no value”" in seen.gpu
    assert "2 samples say “no value”" in seen.alarm
    assert "f-hatch" in seen.source
    assert "41 °C" in seen.gpu
    query = {**RANGE, "format": "csv"}
    lines = person.http.get(f"/api/v1{PAGE}/telemetry", params=query).text.splitlines()
    assert (len(lines), sum(",blank," in line for line in lines)) == (19, 6)
    for wrong in ("2147483632", "2,147,483,632", "e+18", "140,737", "9,223"):
        assert wrong not in seen.gpu + seen.alarm


def test_nan_and_infinities_are_marks_in_strict_json(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    seen = around(serve, prometheus, "nan_and_infinities")
    (series,) = seen.samples["series"]
    assert series["values"] == [12.5, None, None, 12.4, None, 12.6]
    assert [value for _, value in series["not_readings"]] == ["NaN", "Infinity", "-Infinity"]
    assert [one["kind"] for one in series["marks"]] == ["nan", "infinite", "infinite"]
    assert seen.source.count(">∞</text>") == 2
    assert "f-hatch" in seen.source
    assert "1 sample is not a number; 2 samples are infinite" in seen.gpu
    assert "12.6" in seen.gpu


def test_an_xid_that_stays_is_not_dated_to_the_alarm(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    seen = around(serve, prometheus, "sticky_xid", passes())
    (only,) = [one for one in seen.telemetry["readings"][0]["observations"] if "Xid" in one["text"]]
    assert (only["risen"], only["when"]) == (False, "standing")
    assert "31" in only["text"]
    assert "already present before the suspect window" in only["text"]
    assert "already there before the first sample" in seen.alarm
    assert "Xid 31 in" not in seen.alarm
    assert seen.telemetry["state"] != "risen"


def test_a_reset_is_named_and_the_rise_is_neither_negative_nor_huge(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    seen = around(serve, prometheus, "counter_reset")
    by_field = {one["field_id"]: one for one in seen.samples["series"]}
    assert (by_field[202]["rise"], by_field[310]["rise"]) == (4, 0)
    assert [one["was"] for one in by_field[202]["resets"]] == [120]
    assert [one["became"] for one in by_field[310]["resets"]] == [0]
    assert "rose by 4, reset by 02 Mar 10:13:00 UTC" in seen.gpu
    assert "rose by 0, reset by 02 Mar 10:13:00 UTC" in seen.gpu
    for wrong in ("rose by 120", "rose by 122", "-116", "rose by -"):
        assert wrong not in seen.gpu + seen.alarm
    for one in seen.telemetry["readings"][0]["observations"]:
        assert one["code"] != "increase" or 0 <= one["amount"] <= 4


def test_a_series_split_by_its_pod_is_one_line_and_one_rise(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    seen = around(serve, prometheus, "split_by_pod")
    (series,) = seen.samples["series"]
    assert series["values"] == [5, 5, 6, 6, 6, 8, 8]
    assert (series["rise"], series["joined"]) == (3, 3)
    assert "rose by 3" in seen.gpu
    assert seen.source.count("<figure") == 1
    assert seen.source.count('class="s-sus w15 f-clear"') == 1


def test_an_index_on_two_nodes_is_joined_by_uuid_alone(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    seen = around(serve, prometheus, "one_index_two_nodes")
    assert sorted(seen.numbers) == [41, 42, 42]
    assert "42 °C" in seen.gpu
    for hot in ("88", "90 °C", "91"):
        assert hot not in seen.gpu
    assert seen.telemetry["state"] == "nothing_found"


def test_clock_events_are_read_under_both_names_bit_by_bit(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    prometheus.write(answer("renamed_clock_events"))
    service = serve({"url": prometheus.url})
    first, second = (culprit(), culprit(rank=21, step=31))
    posted = service.post(rank_map(), first, second)
    rounds(service)
    found = []
    for one in posted[1:]:
        (read,) = look(service, str(one["id"])).telemetry["readings"]
        assert len(read["looked_at"]) == 1
        found.append(read["observations"])
    texts = [" ".join(each["text"] for each in one).lower() for one in found]
    assert "software power" in texts[0]
    assert "slowdown" not in texts[0]
    assert "hardware slowdown" in texts[1]
    assert "hardware thermal" in texts[1]
    assert not any(each["risen"] and "idle" in each["text"].lower() for each in found[1])


def test_three_days_at_fifteen_seconds_come_in_parts_and_whole(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    last = 1_772_446_500.0  # 2026-03-02 10:15
    metric = answer("long_range")[0][0]
    prometheus.write([(metric, [(last - 15 * n, 40.0 + n % 3) for n in range(17_280)][::-1])])
    service = serve({"url": prometheus.url})
    service.post(rank_map())
    person = service.person("operator")
    days = ["2026-02-27T10:15:00Z"] + [f"2026-0{day}T10:15:00Z" for day in ("2-28", "3-01", "3-02")]
    found: dict[float, float] = {}
    whole = f"{PAGE}?from={days[0]}&to={days[-1]}"
    assert "ask for it in parts" in person.http.get(whole).text
    for start, end in pairwise(days):
        span = {"from": start, "to": end}
        assert "Asked for this GPU" in person.press(f"{PAGE}/telemetry", PAGE, **span)
        rounds(service)
        part = strict(person.http.get(f"/api/v1{PAGE}/telemetry", params=span).text)
        (series,) = part["series"]
        found |= dict(zip(series["times"], series["values"], strict=True))
        assert series["interval_s"] == 15.0
        assert "f-hatch" not in person.get(f"{PAGE}?from={start}&to={end}").split("tele")[-1]
    assert len(found) == 17_280


def test_a_source_that_will_not_give_so_much_is_asked_for_less(
    serve: Callable[..., Service], troubled: Troubled
) -> None:
    refusal = json.loads((ANSWERS / "too_many_points.json").read_text())["error"]
    metric = answer("long_range")[0][0]

    def reply(form: dict[str, str]) -> Any:
        milliseconds = int(form["query"].rsplit("[", 1)[1].removesuffix("ms]"))
        if milliseconds > 1_800_000:
            return failure(400, refusal)
        end = float(form["time"])
        return matrix((metric, [[end - 15, "41"], [end, "42"]]))

    troubled.replies = [reply]
    service = serve({"url": troubled.url})
    posted = service.post(rank_map(), culprit())
    rounds(service)
    seen = look(service, str(posted[-1]["id"]))
    assert seen.numbers
    assert "exceeded maximum resolution" not in seen.alarm + seen.gpu
    assert "<figure" in seen.source


def test_a_gpu_that_fell_silent_stands_first(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    seen = around(serve, prometheus, "one_gpu_silent")
    (read,) = seen.telemetry["readings"]
    assert (seen.telemetry["state"], read["observations"][0]["field"]) == ("risen", None)
    said = read["observations"][0]["text"]
    assert "10:14" in said
    assert "7 of 8" in said or "7 of the 8" in said
    assert said[:20] in seen.alarm.split("Thick", 1)[0]
    assert said[:20] in seen.gpu.split("Thick", 1)[0]
    assert "f-hatch" in seen.source


def test_spellings_of_one_gpu_find_its_metrics_and_an_index_finds_none(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    prometheus.write(answer("one_gpu"))
    service = serve({"url": prometheus.url})
    folder = CASES / "26-gpu-uuid-forms"
    posted = []
    for name, kind in (("maps", "rank_map"), ("alarms", "alarm")):
        lines = (folder / f"{name}.ndjson").read_text().splitlines()
        posted = service.post(*({"kind": kind, **json.loads(line)} for line in lines))
    rounds(service)
    person = service.person("viewer")
    for number, one in enumerate(posted):
        alarm = strict(person.get(f"/api/v1/alarms/{one['id']}"))
        read = {each["gpu_uuid"]: each for each in alarm["telemetry"]["readings"]}
        if number in (7, 8):
            assert SUSPECT not in read
            assert alarm["findings"][0]["node"] == "hyperpod-i-0c0ffee0000000002"
            continue
        assert list(read) == [SUSPECT], number
        assert read[SUSPECT]["state"] == "nothing_found"
        if number == 5:
            assert "posted as a short id; one GPU fits" in person.get(f"/alarms/{one['id']}")
    samples = strict(person.http.get(f"/api/v1{PAGE}/telemetry", params=RANGE).text)
    assert [one["values"] for one in samples["series"]] == [[41, 42, 43]]
