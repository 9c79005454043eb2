"""Does one series with absurd labels leave the samples of all others whole?"""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from dataclasses import replace

import sqlalchemy as sa

from app.sources.ports import Pulled, Question
from app.store.tables import telemetry_windows
from tests.actions.service import Service
from tests.telemetry.conftest import post_job, rounds
from tests.telemetry.fleet import Fleet, using
from witness.rules.samples import RawSeries

VALUES = {"DCGM_FI_DEV_GPU_TEMP": lambda field, rank, at: 40.0}


class Talkative(Fleet):
    """A fleet of which one series is named by a label that no index can hold."""

    def pull(self, question: Question) -> Pulled:
        pulled = super().pull(question)
        chance = random.Random(1)  # what repeats itself is packed
        name = "".join(chance.choices(string.ascii_letters, k=9_000))
        odd = RawSeries(dict(pulled.series[0].labels) | {"GPU_I_ID": name}, [(question.end, 1.0)])
        return replace(pulled, series=(*pulled.series, odd))


def test_a_label_of_any_length_costs_its_own_series_only(serve: Callable[..., Service]) -> None:
    service = using(serve(), Talkative(VALUES))
    post_job(service)
    assert rounds(service) == 11
    with service.context.store.reading() as connection:
        found = list(connection.execute(sa.select(telemetry_windows)))
    assert {one.state for one in found} == {"done"}
    assert all("1 series of DCGM_FI_DEV_GPU_TEMP were left out" in one.warnings for one in found)
