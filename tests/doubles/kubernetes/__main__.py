"""How is the double run by hand?

`python -m tests.doubles.kubernetes [case.json] --port 16443 --tls --kubeconfig double.yaml`
"""

import argparse
import sys
import threading
from pathlib import Path

from tests.doubles.kubernetes.double import KubernetesDouble


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.doubles.kubernetes")
    parser.add_argument("case", nargs="?", type=Path, help='{"nodes": [], "pods": [], "fail": {}}')
    parser.add_argument("--port", type=int, default=16443, help="0: any free one")
    parser.add_argument("--tls", action="store_true", help="kubectl sends no token without it")
    parser.add_argument("--kubeconfig", type=Path, help="write a kubeconfig that points here")
    asked = parser.parse_args()
    with KubernetesDouble(asked.case, tls=asked.tls, port=asked.port) as double:
        if asked.kubeconfig:
            double.kubeconfig(asked.kubeconfig)
        sys.stdout.write(f"serving on {double.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            sys.stdout.write("stopped\n")


if __name__ == "__main__":
    main()
