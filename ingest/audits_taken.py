"""Which starts of jobs say that they audit a machine closely, as they were asked?"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from app.store import ids, targeted_audits
from ingest.documents import Post
from ingest.group import Group

MOST = 100  # of one document; no job makes more of them


def take_audits(group: Group, posts: Sequence[Post]) -> None:
    """Note who took which targeted audit first; a repeat changes nothing.

    A job can only take what is asked in its own cluster. That it runs on the machine is seen
    later, in its rank map, when its passes are counted.
    """
    for post in posts:
        envelope = post.envelope
        taken = _known(envelope.audit_requests)
        if not taken:
            continue
        by = {
            "job": envelope.job,
            "namespace": envelope.namespace,
            "job_id": ids.show(group.job_id(envelope)),
            "attempt": envelope.attempt,
        }
        targeted_audits.take(group.connection, taken, envelope.cluster, by, envelope.at)


def _known(given: Sequence[str]) -> list[int]:
    """Read the ids that can be ours; anything else means nothing here."""
    found = []
    for text in given[:MOST]:
        with suppress(ValueError):
            found.append(ids.read(text))
    return found
