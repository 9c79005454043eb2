"""Does each fault that an exporter shows come through a real scrape into the reading it must give?

Two nodes are scraped once a second while eleven things happen to them: one by an exporter with the
old names whose labels lose against the target's, one with the names of DCGM 4.6 whose labels win.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from app.sources.ports import Pulled, Question
from app.sources.registry import sources
from tests.doubles.dcgm_exporter import faults
from tests.doubles.dcgm_exporter.node import Node, Style
from tests.doubles.dcgm_exporter.over_http import serving
from tests.prometheus import Prometheus, Scrape, dcgm
from witness.rules.observations import Observation, Reading, Source, Window
from witness.rules.samples import Joined, Series, join
from witness.rules.telemetry import read

BEFORE_S, AFTER_S = 7.0, 9.0
SBE, REMAP, LOST, HOT, LINK, PCIE, POD, IDLE = range(8)
NAMES = ("old", "new", "quiet")


def uuids(node: int) -> list[str]:
    return [dcgm("", gpu, node)["UUID"] for gpu in range(8)]


def script() -> list[faults.Event]:
    """One thing for each GPU, a moment after the time of the fault."""
    at = BEFORE_S + 0.5
    return [
        *faults.corrected_errors(SBE, at),
        *faults.row_remap(REMAP, at),
        *faults.lost(LOST, at),
        *faults.overheating(HOT, at, at + 5),
        *faults.link_errors(LINK, 1, at),
        *faults.pcie_replays(PCIE, at),
        *faults.pod_moves([POD], "train-worker-9", at),
        *faults.idle([IDLE], at),
        *faults.says_no_value(IDLE, "DEV_MEMORY_TEMP"),
    ]


def quiet_script() -> list[faults.Event]:
    """What happens to a whole node and means nothing for any GPU."""
    return [
        *faults.corrected_errors(0, 1.5, bursts=1),
        *faults.driver_reload(BEFORE_S + 0.5),
        *faults.exporter_restart(BEFORE_S + 2.5, 4.0),
    ]


STYLES = {
    "old": Style(drops_blanks=False),
    "new": Style(renamed=True, host_label="hostname"),
    "quiet": Style(level="advanced"),
}


@dataclass(frozen=True)
class Scraped:
    """What was pulled of each node once everything had happened, and when the fault came."""

    pulled: dict[str, Pulled]
    began: float
    ended: float

    @property
    def fault(self) -> float:
        return self.began + BEFORE_S

    def joined(self, name: str) -> Joined:
        return join(self.pulled[name].series, 1.0)

    def reading(self, name: str, gpu: int) -> Reading:
        """Read one GPU against its node around the time of the fault."""
        node = uuids(NAMES.index(name))
        window = Window(self.began, self.fault - 1, self.fault + 4, self.ended, sample_age_s=2.0)
        others = [one for one in node if one != node[gpu]]
        source = Source(level="advanced", interval_s=1.0)
        return read(window, node[gpu], self.joined(name).series, node=others, source=source)

    def series(self, name: str, gpu: int, field: int) -> list[Series]:
        uuid = uuids(NAMES.index(name))[gpu]
        found = self.joined(name).series
        return [one for one in found if (one.gpu_uuid, one.field_id) == (uuid, field)]


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Scraped:
    """Scrape three nodes for sixteen seconds, and pull each as the service does."""
    folder = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as stack:
        nodes, targets = [], []
        for place, name in enumerate(NAMES):
            events = quiet_script() if name == "quiet" else script()
            node = Node(uuids(place), f"node-{place}", STYLES[name], events)
            nodes.append(node)
            host = stack.enter_context(serving(node))
            labels = {"pod": f"dcgm-exporter-{place}", "namespace": "monitoring", "node": "n"}
            targets.append(Scrape(host, name == "new", labels))
        prometheus = stack.enter_context(Prometheus(folder, a_port(), scrape=targets))
        while any(one.start is None for one in nodes):  # it begins with the first scrape
            time.sleep(0.05)
        began = max(one.start or 0.0 for one in nodes)
        time.sleep(max(began + BEFORE_S + AFTER_S - time.time(), 0))
        ended = time.time()
        pulled = {
            name: pull(prometheus.url, uuids(place), began - 5, ended)
            for place, name in enumerate(NAMES)
        }
    return Scraped(pulled, began, ended)


def a_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pull(url: str, node: Sequence[str], start: float, end: float) -> Pulled:
    (one,) = sources({"alpine": [{"url": url, "interval_s": 1}]})["alpine"]
    pulled = one.pull(Question(tuple(node), start, end))
    one.close()
    return pulled


def risen(reading: Reading) -> dict[tuple[str, int | None], Observation]:
    return {(one.code, one.field_id): one for one in reading.risen}


def test_all_of_a_node_comes_in_two_queries(scraped: Scraped) -> None:
    for name in NAMES:
        assert (scraped.pulled[name].queries, scraped.pulled[name].partial) == (2, False)
        joined = scraped.joined(name)
        assert {one.gpu_uuid for one in joined.series} == set(uuids(NAMES.index(name)))
        assert joined.not_joined == ()


def test_old_and_new_names_give_the_same_fields(scraped: Scraped) -> None:
    old, new = ({one.field_id for one in scraped.joined(name).series} for name in NAMES[:2])
    assert old == new
    assert {100, 150, 155, 230, 310, 409, 497, 112, 9001, 9002} <= old
    basic_and_advanced = {one.field_id for one in scraped.joined("quiet").series}
    assert len(basic_and_advanced) == 26


@pytest.mark.parametrize("name", ["old", "new"])
def test_the_pod_is_the_workloads_whoever_wins(scraped: Scraped, name: str) -> None:
    seen = [one.seen for one in scraped.joined(name).series]
    assert {pod for one in seen for pod in one.pods} >= {"research/train-worker-0"}
    assert not any("dcgm-exporter" in pod for one in seen for pod in one.pods)


@pytest.mark.parametrize("name", ["old", "new"])
def test_corrected_errors_rise(scraped: Scraped, name: str) -> None:
    found = risen(scraped.reading(name, SBE))
    assert set(found) == {("increase", 310), ("increase", 312)}
    assert found["increase", 310].amount == 28.0


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_remapped_row_rises_with_its_xids(scraped: Scraped, name: str) -> None:
    reading = scraped.reading(name, REMAP)
    found = risen(reading)
    assert {("increase", 311), ("increase", 313), ("increase", 393)} <= set(found)
    assert any(field == 396 for _, field in found)
    xids = [one.text for one in reading.observations if one.code == "xid_new"]
    assert len(xids) == 2  # the error's code in a label splits the series; it is joined again
    assert any("Xid 63" in text for text in xids)
    assert any("Xid 94" in text for text in xids)
    counted = {dict(one.part).get("xid") for one in scraped.series(name, REMAP, 9001)}
    assert counted == {None, "63", "94"}


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_lost_gpu_is_silent_while_the_others_go_on(scraped: Scraped, name: str) -> None:
    reading = scraped.reading(name, LOST)
    assert reading.status == "risen"
    assert reading.risen[0].code == "silent"
    assert "7 of 8 GPUs of this node report" in reading.headline
    assert any("did not report until the end" in note for note in other(scraped, name).notes)


def other(scraped: Scraped, name: str) -> Reading:
    return scraped.reading(name, POD)


@pytest.mark.parametrize("name", ["old", "new"])
def test_heat_shows_in_bits_and_in_time_held_down(scraped: Scraped, name: str) -> None:
    found = risen(scraped.reading(name, HOT))
    assert ("clock_event", 112) in found
    assert ("increase", 241) in found
    assert found["increase", 241].amount == pytest.approx(5 * 0.6e9, rel=0.5)
    texts = [one.text for one in scraped.reading(name, HOT).risen if one.field_id == 112]
    assert any("hardware thermal slowdown" in text for text in texts)
    events = {dict(one.part).get("event") for one in scraped.series(name, HOT, 9002)}
    assert {"hw_slowdown", "sw_thermal", "hw_thermal"} <= events


@pytest.mark.parametrize("name", ["old", "new"])
def test_link_errors_name_the_link_though_it_has_another_label(scraped: Scraped, name: str) -> None:
    found = risen(scraped.reading(name, LINK))
    assert set(found) == {("increase", 409), ("increase", 497)}
    assert found["increase", 409].amount == 15.0
    assert "(on 1)" in found["increase", 497].text
    assert len(scraped.series(name, LINK, 497)) == 2


@pytest.mark.parametrize("name", ["old", "new"])
def test_replays_of_pcie_rise(scraped: Scraped, name: str) -> None:
    found = risen(scraped.reading(name, PCIE))
    assert set(found) == {("increase", 202)}
    assert found["increase", 202].amount == 33.0


@pytest.mark.parametrize("name", ["old", "new"])
def test_another_pod_is_the_same_series_and_nothing_else(scraped: Scraped, name: str) -> None:
    reading = scraped.reading(name, POD)
    assert (reading.status, reading.observations) == ("nothing_found", ())
    (temperature,) = scraped.series(name, POD, 150)
    assert (temperature.joined, temperature.left_out) == (2, 0)
    assert temperature.seen.pods == ("research/train-worker-0", "research/train-worker-9")
    assert len(temperature.times) >= AFTER_S


@pytest.mark.parametrize("name", ["old", "new"])
def test_idle_is_said_and_no_fault(scraped: Scraped, name: str) -> None:
    reading = scraped.reading(name, IDLE)
    assert reading.status == "nothing_found"
    assert any("“idle”" in one.text for one in reading.observations)
    blank = [one for one in reading.missing if one.field_id == 140]
    assert [one.why for one in blank] == ["no_value" if name == "old" else "absent"]


def test_a_reload_of_the_driver_and_a_restart_of_the_exporter_are_no_faults(
    scraped: Scraped,
) -> None:
    reading = scraped.reading("quiet", 0)
    assert reading.status == "nothing_found"
    resets = [one for one in reading.observations if one.code == "reset"]
    assert resets
    assert "corrected memory errors since driver load from 7" in resets[0].text
    (kept,) = scraped.series("quiet", 0, 312)
    assert kept.values[-1] == max(kept.values)  # the board's own counter was not set back
    assert any("scrape" in note and "missing" in note for note in reading.notes)
    for gpu in range(1, 8):
        assert scraped.reading("quiet", gpu).status == "nothing_found"
