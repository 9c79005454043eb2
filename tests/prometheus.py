"""How do tests get a real Prometheus with samples of any time in it?

Samples are written by its remote-write receiver, which takes times of long ago; the form is small
enough to be encoded here.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

Samples = Sequence[tuple[float, float]]
OUT_OF_ORDER = "90d"
STALE_MARK = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]


def program() -> str:
    """Find the binary: the system's, or the one unpacked beside the environment."""
    unpacked = Path(sys.prefix) / "prometheus" / "usr" / "bin" / "prometheus"
    found = shutil.which("prometheus") or (str(unpacked) if unpacked.exists() else None)
    assert found, "no prometheus: run tests/system-packages"
    return found


@dataclass(frozen=True)
class Scrape:
    """A target, the labels that service discovery gives it, and whose labels win."""

    target: str
    honor_labels: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    interval_s: int = 1


class Prometheus:
    """One server with an empty store, until the block ends."""

    def __init__(
        self, folder: Path, port: int, options: Sequence[str] = (), scrape: Iterable[Scrape] = ()
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        settings = folder / "prometheus.yml"
        settings.write_text(_settings(list(scrape)))
        self._log = (folder / "prometheus.log").open("wb")
        self._running = subprocess.Popen(
            [
                program(),
                f"--config.file={settings}",
                f"--storage.tsdb.path={folder / 'data'}",
                "--storage.tsdb.retention.time=10y",
                f"--web.listen-address=127.0.0.1:{port}",
                "--web.enable-remote-write-receiver",
                *options,
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Self:
        deadline = time.monotonic() + 60
        while not self._is_ready():
            assert self._running.poll() is None, "prometheus ended"
            assert time.monotonic() < deadline, "prometheus is not ready"
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.terminate()
        self._running.wait(20)
        self._log.close()

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def write(self, series: Iterable[tuple[Mapping[str, str], Samples]]) -> None:
        """Store samples: labels with `__name__`, and pairs of seconds and value."""
        body = _literal_snappy(b"".join(_field(1, _series(*one)) for one in series))
        request = urllib.request.Request(
            f"{self.url}/api/v1/write",
            data=body,
            headers={
                "Content-Encoding": "snappy",
                "Content-Type": "application/x-protobuf",
                "X-Prometheus-Remote-Write-Version": "0.1.0",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status in (200, 204)


def _settings(scrape: list[Scrape]) -> str:
    jobs = "".join(
        f"- job_name: dcgm-{place}\n  scrape_interval: {one.interval_s}s\n"
        f"  scrape_timeout: {one.interval_s}s\n"
        f"  honor_labels: {str(one.honor_labels).lower()}\n  static_configs:\n"
        f"  - targets: ['{one.target}']\n    labels: {json.dumps(dict(one.labels))}\n"
        for place, one in enumerate(scrape)
    )
    head = f"storage: {{tsdb: {{out_of_order_time_window: {OUT_OF_ORDER}}}}}\n"
    return head + (f"scrape_configs:\n{jobs}" if jobs else "")


def _series(labels: Mapping[str, str], samples: Samples) -> bytes:
    named = b"".join(
        _field(1, _field(1, key.encode()) + _field(2, value.encode()))
        for key, value in sorted(labels.items())
    )
    return named + b"".join(
        _field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + _varint(round(seconds * 1000)))
        for seconds, value in samples
    )


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _literal_snappy(data: bytes) -> bytes:
    """Wrap bytes in snappy's block form without compressing them."""
    parts = [_varint(len(data))]
    for first in range(0, len(data), 1 << 16):
        piece = data[first : first + (1 << 16)]
        parts += [bytes([61 << 2]), struct.pack("<H", len(piece) - 1), piece]
    return b"".join(parts)


def dcgm(field: str, gpu: int, node: int = 2, **more: Any) -> dict[str, str]:
    """Give the labels that the exporter puts on one field of one GPU."""
    return {
        "__name__": field,
        "gpu": str(gpu),
        "UUID": f"GPU-a0000{node:03x}-1111-4222-8333-{gpu:012x}",
        "pci_bus_id": f"00000000:{0x53 + gpu:02X}:00.0",
        "device": f"nvidia{gpu}",
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": f"hyperpod-i-0c0ffee0000000{node:03x}",
        "DCGM_FI_DRIVER_VERSION": "570.172.08",
        **{key: str(value) for key, value in more.items()},
    }
