"""With five hundred cases at once: do the rails hold, and can the docket still be used?"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from app.actions import brakes
from app.actions.batch import LIMIT, Picked, decide_together
from app.actions.decide import Choice
from app.filters import Filters
from app.store import docket_reading, fleet_reading, proposal_listing, run_settings
from tests.actions.fleet import envelope
from tests.approvals.house import ADMIN, ANN, House, node_name

CASES = 500


@pytest.fixture
def crowded(house: House) -> House:
    """Post a job on 500 nodes, one rank each, and an alarm that names each of them."""
    ranks = [
        {
            "rank": number,
            "node": node_name(number),
            "gpu_uuid": f"GPU-{number:08x}-1111-4222-8333-00000000000f",
        }
        for number in range(CASES)
    ]
    job, at = "crowd", house.time.isoformat()
    house.post(envelope("rank_map", job, at, world_size=CASES, ranks=ranks))
    alarms = []
    for number in range(CASES):
        step = 100 + number
        said = {
            "step": step, "check": "weights", "suspects": [number],
            "suspect_window": [step - 9, step], "last_audit_pass": step - 10,
            "last_weight_check_pass": step - 10,
        }  # fmt: skip
        alarms.append(envelope("alarm", job, at, reporter_rank=0, alarm=said))
    house.post(*alarms)
    house.read_fleet(CASES)
    return house


@pytest.mark.timeout(600)
def test_of_500_at_once_no_more_go_through_than_the_limits_let(crowded: House) -> None:
    assert brakes.look(crowded.context), "so many at once pull the brake"
    with crowded.context.store.reading() as connection:
        assert "cordons of 500 nodes" in run_settings.brake(connection).reason
    crowded.wait(minutes=1)
    assert brakes.set_by_hand(crowded.context, False, "one bad batch of machines", "root")
    assert not brakes.look(crowded.context)
    crowded.limit(max_per_group=400, max_per_zone=400)
    rows = sorted(crowded.waiting().values(), key=lambda one: one.id)
    assert len(rows) == CASES
    codes: Counter[str | None] = Counter()
    for start in range(0, CASES, LIMIT):
        picked = [Picked(one.id, one.evidence_version) for one in rows[start : start + LIMIT]]
        done = decide_together(crowded.context, picked, ADMIN, Choice("approved", 0, "batch"))
        assert done.asked == len(done.members) == len(picked)
        codes.update(one.code for one in done.members)
    assert codes[None] == 32
    assert {None, "max_nodes"} <= set(codes) <= {None, "max_nodes", "max_per_domain"}
    with crowded.context.store.reading() as connection:
        strip = fleet_reading.read(connection, crowded.time, timedelta(minutes=15))
        shown = docket_reading.counts(connection, Filters())
        page = proposal_listing.page(
            connection, Filters(), None, 51, statuses=("proposed",), oldest_first=True
        )
    assert strip.waiting == CASES - 32
    assert (shown.open, shown.suspect) == (CASES, CASES)
    assert len(page) == 51
    rest = [Picked(one.id, one.evidence_version) for one in rows[:LIMIT]]
    no = decide_together(crowded.context, rest, ANN, Choice("rejected", 0, "software"))
    assert no.kept == LIMIT - sum(crowded.row(one).status == "approved" for one in rows[:LIMIT])
