"""What does a drill act in: the service, the doubles, one clock, and what is seen of them?"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from app.cluster.provider.registry import Providers
from app.config import Settings
from app.demo import recorded
from app.main import make_context
from app.store import audit, hardware_tests, machine_gpus, machine_links
from app.store.ids import read as read_id
from app.store.machine_links import MachineLink
from app.store.migrate import upgrade
from tests.actions.service import ADMIN_TOKEN, BEARER, Service, until
from tests.doubles.kubernetes import KubernetesDouble
from tests.doubles.kubernetes.answers import ApiError
from tests.doubles.sagemaker import Platform, SagemakerDouble
from tests.doubles.sagemaker.__main__ import machines

CLUSTER = "alpine"
OLD = "i-0c0ffee0000000002"
OLD_NODE = f"hyperpod-{OLD}"
REPLACE, CHECK = "BatchReplaceClusterNodes", "StartClusterHealthCheck"
PATIENCE_S = 30.0
SIGN = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}

Json = dict[str, Any]
Say = Callable[[str], None]


def out(words: str) -> None:
    """Show a line."""
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


class OffError(Exception):
    """Something is not as it has to be."""


def expect(true: bool, words: str) -> None:
    """Go on only if something holds."""
    if not true:
        raise OffError(words)


@dataclasses.dataclass
class World:
    """The service and what stands around it."""

    service: Service
    sagemaker: SagemakerDouble
    kubernetes: KubernetesDouble
    say: Say

    # --- what is done ----------------------------------------------------------------------------

    def post_recorded(self, instance_id: str = OLD) -> None:
        """Post the recorded runs of the jobs that ran on the machine of this drill."""
        documents = list(_documents(instance_id))
        jobs = {one["job"] for one in documents}
        for start in range(0, len(documents), 50):
            self.service.post(*documents[start : start + 50])
        self.say(f"posted {len(documents)} recorded documents of {len(jobs)} jobs on {instance_id}")

    def proposal(self, action: str, instance_id: str = OLD) -> Json:
        """Find the one open proposal of an action for a machine."""
        found = [
            one
            for one in self.service.proposals(action, limit="200")
            if one["target"]["instance_id"] == instance_id and one["status"] == "proposed"
        ]
        expect(len(found) == 1, f"{len(found)} open proposals to {action} {instance_id}, not one")
        one: Json = found[0]
        return one

    def approve(self, proposal: Json) -> Json:
        """Approve as a program with every right; give the row once it was sent."""
        status, answer = self.decide(proposal)
        expect(status == 200, f"the approval was answered {status}: {answer}")
        until(lambda: self.row(proposal)["status"] not in ("approved", "executing"), "it is sent")
        return self.row(proposal)

    def decide(self, proposal: Json) -> tuple[int, Json]:
        """Approve; give status and answer, whatever they are."""
        address = f"{self.service.url}/api/v1/proposals/{proposal['id']}/approve"
        body = {"evidence_version": proposal["evidence_version"]}
        answer = httpx2.post(address, json=body, headers=BEARER, timeout=PATIENCE_S)
        return answer.status_code, answer.json()

    def row(self, proposal: Json) -> Json:
        """Read a proposal."""
        found: Json = self.service.read(f"/proposals/{proposal['id']}")
        return found

    def pass_time(self, minutes: float) -> None:
        """Put the clock forward."""
        self.sagemaker.advance(minutes=minutes)
        self.say(f"{self.sagemaker.clock.now():%H:%M:%S}  … {minutes:g} minutes later")

    # --- what is seen ----------------------------------------------------------------------------

    def reaches(self, proposal: Json, status: str, saying: str = "") -> Json:
        """Wait until the executor has brought a row to a status and words, and show it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            row = self.row(proposal)
            if row["status"] == status and saying in _said(row):
                self.show(row)
                return row
            if time.monotonic() > deadline:
                words = f"{row['action']} is {row['status']}, not {status} {saying}".rstrip()
                raise OffError(f"{words}: {_said(row)}")
            time.sleep(0.2)

    def show(self, row: Json) -> None:
        """Show how an action stands."""
        self.say(f"{row['action']:<18} {row['status']:<9} {_said(row)}")

    def calls(self, operation: str) -> int:
        """Count the calls of one operation that SageMaker has seen."""
        return len(self.sagemaker.calls_of(operation))

    def is_in_kubernetes(self, name: str) -> bool:
        """Tell whether Kubernetes knows a node."""
        try:
            self.kubernetes.node(name)
        except ApiError:
            return False
        return True

    def links(self, proposal: Json) -> tuple[MachineLink, ...]:
        """Give which machine took the place of which, as an order saw it."""
        with self.service.context.store.reading() as connection:
            found = machine_links.of_proposal(connection, read_id(proposal["id"]))
        for one in found:
            self.say(f"linked: {one.old_instance_id} → {one.new_instance_id}, by {one.how}")
        return tuple(found)

    def results(self, proposal: Json) -> list[str]:
        """List what the test that was ordered is known to have said."""
        with self.service.context.store.reading() as connection:
            found = hardware_tests.of_proposals(connection, [read_id(proposal["id"])])
        return [one.result for one in found]

    def gpus_of(self, instance_id: str) -> list[str]:
        """List the GPUs that rank maps placed in a machine."""
        with self.service.context.store.reading() as connection:
            found = machine_gpus.of_instance(connection, CLUSTER, instance_id)
        return [one.uuid for one in found]

    def verify_audit(self) -> None:
        """Walk along the audit chain."""
        with self.service.context.store.reading() as connection:
            found = audit.verify(connection)
        expect(found.first_bad is None, f"the audit chain breaks: {found.why}")
        self.say(f"audit: {found.entries} entries, the chain fits, ends in {found.last_hash[:12]}")


@contextmanager
def world(say: Say = out, **cluster: Any) -> Iterator[World]:
    """Start the doubles and the service, on a fresh database and one clock."""
    before = {key: os.environ.get(key) for key in SIGN}
    os.environ.update(SIGN)
    with ExitStack() as stack:
        stack.callback(_restore, before)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drill-")))
        sagemaker = stack.enter_context(SagemakerDouble(machines(), **cluster))
        kubernetes = stack.enter_context(KubernetesDouble({"nodes": []}))
        Platform(sagemaker, kubernetes)
        config = kubernetes.kubeconfig(folder / "kubeconfig")
        settings = Settings(
            data_dir=folder,
            admin_token=ADMIN_TOKEN,
            clusters={CLUSTER: {"kubeconfig": str(config)}},
            providers={CLUSTER: sagemaker.entry()},
        )
        upgrade(settings.resolved_database_url())
        context = dataclasses.replace(make_context(settings), now=sagemaker.clock.now)
        service = Service(context)
        stack.callback(_close, service)
        say(f"service on {service.url}, {len(sagemaker.cluster.nodes)} machines behind it")
        yield World(service, sagemaker, kubernetes, say)


def _said(row: Json) -> str:
    """Give the words of an action: what was seen last while it waits, else how it ended."""
    seen = row["details"].get("standing") if row["status"] in ("accepted", "waiting") else None
    return str(seen or row["outcome"] or "")


def _close(service: Service) -> None:
    service.close()
    if isinstance(service.context.providers, Providers):
        service.context.providers.close()


def _restore(before: dict[str, str | None]) -> None:
    for key, text in before.items():
        if text is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = text


def _recorded() -> Iterator[Json]:
    """Give the recorded documents as a job of one's own would have posted them."""
    for path in sorted(recorded.DATA.glob("*.ndjson")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def _maps() -> list[Json]:
    return [one for one in _recorded() if one["kind"] == "rank_map"]


def _documents(instance_id: str) -> Iterator[Json]:
    """Give the documents of the jobs that ran on a machine."""
    jobs = {
        one["job"]
        for one in _maps()
        if any(rank["instance_id"] == instance_id for rank in one["ranks"])
    }
    return (one for one in _recorded() if one["job"] in jobs)
