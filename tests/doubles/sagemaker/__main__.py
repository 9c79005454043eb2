"""How is the double run by hand, with a Kubernetes beside it and a clock that runs fast?

`python -m tests.doubles.sagemaker --speed 60` prints the variables for `make run`; the machines are
those of the recorded runs that `make demo` posts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from pathlib import Path

from app.demo import recorded
from tests.doubles.kubernetes import KubernetesDouble
from tests.doubles.sagemaker import Platform, SagemakerDouble

TICK_S = 1.0


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.doubles.sagemaker")
    parser.add_argument("--speed", type=float, default=60.0, help="its seconds in one of ours")
    parser.add_argument("--karpenter", action="store_true", help="nothing comes back by itself")
    asked = parser.parse_args()
    scaler = "Karpenter" if asked.karpenter else None
    stopped = threading.Event()
    with (
        tempfile.TemporaryDirectory(prefix="sagemaker-double-") as folder,
        SagemakerDouble(machines(), name=recorded.CLUSTER, autoscaler=scaler) as sagemaker,
        KubernetesDouble({"nodes": []}) as kubernetes,
    ):
        Platform(sagemaker, kubernetes)
        show(sagemaker, kubernetes.kubeconfig(Path(folder) / "kubeconfig"))
        try:
            while not stopped.wait(TICK_S):
                sagemaker.advance(seconds=asked.speed * TICK_S)
        except KeyboardInterrupt:
            sys.stdout.write("stopped\n")


def machines() -> list[str]:
    """List every machine of the recorded runs."""
    found: set[str] = set()
    for path in recorded.DATA.glob("*.ndjson"):
        for line in path.read_text(encoding="utf-8").splitlines():
            found |= {one["instance_id"] for one in json.loads(line).get("ranks") or ()}
    return sorted(found)


def show(sagemaker: SagemakerDouble, kubeconfig: Path) -> None:
    """Print the variables with which the service finds both doubles."""
    name = recorded.CLUSTER
    variables = {
        "WITNESS_CLUSTERS": json.dumps({name: {"kubeconfig": str(kubeconfig)}}),
        "WITNESS_PROVIDERS": json.dumps({name: sagemaker.entry()}),
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for key, text in variables.items():
        sys.stdout.write(f"export {key}='{text}'\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
