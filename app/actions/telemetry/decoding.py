"""How is each window of an alarm decoded once, and let go of when nobody needs it any more?

An alarm of the reduction has 128 suspects, each compared with up to 24 GPUs, and most windows are
those of many suspects. What is decoded takes fifty times the room of what is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from app.store.telemetry_kept import Packed, unpack
from witness.rules.blocks import BlockError
from witness.rules.samples import Series

MOST_SAMPLES = 2_000_000
"""Held at once, beyond what one suspect needs by itself: about 130 MB."""


class Decoded:
    """The windows of an alarm as kept, decoded when a suspect needs them.

    `needs` gives the windows of each suspect, in the order in which they are going to be asked
    for. A window is decoded again only where the suspects between its users need more samples than
    may be held.
    """

    def __init__(
        self,
        packed: Mapping[int, Sequence[Packed]],
        uuids: Mapping[int, str],
        needs: Iterable[Collection[int]],
    ) -> None:
        self._packed, self._uuids = dict(packed), uuids
        self._left = Counter(one for windows in needs for one in windows)
        self._held: dict[int, list[Series] | str] = {}
        self._sizes: dict[int, int] = {}

    @property
    def samples_held(self) -> int:
        """Count the samples that are held decoded."""
        return sum(self._sizes.values())

    def take(self, window_ids: Collection[int]) -> tuple[list[Series], dict[int, str]]:
        """Give the series of a suspect's windows, and of damaged ones what is wrong with them.

        What no later suspect needs is let go of by the next call.
        """
        found: list[Series] = []
        damaged: dict[int, str] = {}
        self._make_room(window_ids)
        for one in window_ids:
            series = self._window(one)
            if isinstance(series, str):
                damaged[one] = series
            else:
                found += series
        self._left.subtract(list(window_ids))
        return found, damaged

    def _window(self, window_id: int) -> list[Series] | str:
        # Put in again at the end, so that the first ones are those not needed for longest.
        known = self._held.pop(window_id, None)
        if known is None:
            known = self._decode(window_id)
            self._sizes[window_id] = sum(one.count for one in self._packed.get(window_id, ()))
        self._held[window_id] = known
        return known

    def _decode(self, window_id: int) -> list[Series] | str:
        uuid = self._uuids[window_id]
        try:
            return [unpack(one, uuid) for one in self._packed.get(window_id, ())]
        except BlockError as error:
            return f"What was kept of {uuid} cannot be read: {error}."

    def _make_room(self, needed: Collection[int]) -> None:
        for one in [one for one in self._held if self._left[one] <= 0]:
            self._drop(one)
            self._packed.pop(one, None)
        wanted = set(needed)
        held = self.samples_held
        held += sum(
            part.count for one in wanted - self._held.keys() for part in self._packed.get(one, ())
        )
        for one in [one for one in self._held if one not in wanted]:
            if held <= MOST_SAMPLES:
                return
            held -= self._sizes[one]
            self._drop(one)

    def _drop(self, window_id: int) -> None:
        del self._held[window_id], self._sizes[window_id]
