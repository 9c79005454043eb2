"""What can a server do to us that lies, never ends, or sends us elsewhere?"""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.sources import bodies, prometheus, sigv4, transport
from app.sources.ports import Away, Pulled, Question, Refused
from app.sources.registry import sources
from tests.sources.conftest import Reply, Troubled, failure, matrix, serving
from tests.sources.raw import speaking
from witness.rules.samples import join

UUID = "GPU-a0000002-1111-4222-8333-000000000005"
OTHER = UUID[:-1] + "6"
LABELS = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "UUID": UUID}
ASKED = Question((UUID,), 1000.0, 1060.0)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Send = Callable[[bytes], None]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_wait", lambda tried, after_s: after_s or 0.01)


def pull(url: str, question: Question = ASKED, **more: object) -> Pulled:
    (one,) = sources({"alpine": [{"url": url, "timeout_s": 0.3, **more}]})["alpine"]
    try:
        return one.pull(question)
    finally:
        one.close()


def endless_body(send: Send) -> None:
    send(HEAD + b"\r\n")
    while True:
        send(b" " * 65536)


def endless_chunks(send: Send) -> None:
    send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        send(b"10000\r\n" + b" " * 65536 + b"\r\n")


def five_gigabytes(send: Send) -> None:
    send(HEAD + b"Content-Length: 5368709120\r\n\r\n" + b" " * 65536)
    time.sleep(0.1)
    send(b" ")


@pytest.mark.parametrize("speak", [endless_body, endless_chunks, five_gigabytes])
def test_an_answer_without_end_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, speak: Callable[[Send], None]
) -> None:
    monkeypatch.setattr(bodies, "ANSWER_LIMIT", 4 << 20)
    tracemalloc.start()
    with speaking(speak) as url, pytest.raises(Refused, match="larger than 4 MiB"):
        pull(url)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 32 << 20


def endless_headers(send: Send) -> None:
    send(HEAD)
    while True:
        send(b"X")
        time.sleep(0.05)


def endless_continue(send: Send) -> None:
    while True:
        send(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.05)


def endless_packing(send: Send) -> None:
    """Empty blocks of deflate: bytes that come and unpack to nothing."""
    send(HEAD + b"Content-Encoding: gzip\r\n\r\n")
    packer = zlib.compressobj(wbits=31)
    while True:
        send(packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH))
        time.sleep(0.02)


@pytest.mark.parametrize("speak", [endless_headers, endless_continue, endless_packing])
def test_a_thread_is_never_held_for_ever(speak: Callable[[Send], None]) -> None:
    began = time.monotonic()
    with speaking(speak) as url, pytest.raises(Away, match="did not give an answer"):
        pull(url, timeout_s=0.1)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "head", [b"", b"\x00\xff" * 9, b"HTTP/9.9 999999 x\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
             b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
             HEAD + b"Content-Length: -5\r\n\r\n", HEAD + b"Content-Length: x\r\n\r\n{}",
             HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"],
)  # fmt: skip
def test_what_is_no_http_is_told_in_words(head: bytes) -> None:
    with speaking(lambda send: send(head)) as url, pytest.raises((Away, Refused)) as raised:
        pull(url)
    assert "source" in str(raised.value)


def test_a_bomb_of_gzip_is_unpacked_no_further_than_the_limit(
    troubled: Troubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "ANSWER_LIMIT", 4 << 20)
    bomb = gzip.compress(b" " * (64 << 20), 1)
    troubled.replies = [(200, {"Content-Encoding": "gzip"}, bomb)]
    tracemalloc.start()
    with pytest.raises(Refused, match="larger than 4 MiB"):
        pull(troubled.url)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 32 << 20


def test_an_answer_that_a_proxy_has_compressed_is_read(troubled: Troubled) -> None:
    _, _, body = matrix((LABELS, [[1010.0, "41"]]))
    for name, packed in (("gzip", gzip.compress(body)), ("deflate", zlib.compress(body))):
        troubled.replies = [(200, {"Content-Encoding": name}, packed)]
        assert pull(troubled.url).samples == 1


@pytest.mark.parametrize(
    ("encoding", "body", "says"),
    [
        ("gzip", b"no gzip at all", "cannot be unpacked"),
        ("gzip", gzip.compress(b"{}" * 500)[:-9], "breaks off"),
        ("br", b"x", "not asked for"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"{}")), "not asked for"),
    ],
    # Packed bytes hold the time of packing: as names they would differ from process to process.
    ids=["no gzip", "half", "unknown", "twice"],
)
def test_what_cannot_be_unpacked_is_refused(
    troubled: Troubled, encoding: str, body: bytes, says: str
) -> None:
    troubled.replies = [(200, {"Content-Encoding": encoding}, body)]
    with pytest.raises(Refused, match=says):
        pull(troubled.url)


@pytest.mark.parametrize("status", [200, 400, 403, 500])
def test_bytes_that_are_no_text_are_told_in_words(troubled: Troubled, status: int) -> None:
    troubled.replies = [(status, {}, b'{"error": "\xff\xfe\x80"}')]
    with pytest.raises((Refused, Away)) as raised:
        pull(troubled.url)
    assert str(raised.value).isprintable()


def test_what_a_database_cannot_hold_is_not_in_a_refusal(troubled: Troubled) -> None:
    troubled.replies = [failure(400, "a\x00b \ud800 \u202e\x1b[31m" + "x" * 9000)]
    with pytest.raises(Refused) as raised:
        pull(troubled.url)
    said = str(raised.value)
    assert said.isprintable()
    assert len(said) < 500
    said.encode()


def test_warnings_are_bounded_and_no_form_of_them_is_a_fault(troubled: Troubled) -> None:
    for odd in (7, "text", {"a": 1}, None, [None, 3, {"x": "\x00"}]):
        troubled.replies = [matrix((LABELS, [[1010.0, "41"]]), warnings=odd, infos=odd)]
        assert all(one.isprintable() for one in pull(troubled.url).warnings)
    troubled.replies = [matrix(warnings=["x" * 2_000 + str(n) for n in range(1_000)])]
    assert sum(map(len, pull(troubled.url).warnings)) < 100_000


@pytest.mark.parametrize("metric", [{"__name__": 5}, {"UUID": None}, {"a": ["b"]}, "x", None])
def test_labels_that_are_no_texts_are_refused(troubled: Troubled, metric: Any) -> None:
    troubled.replies = [matrix((metric, [[1010.0, "41"]]))]
    with pytest.raises(Refused, match="series of the source cannot be read"):
        pull(troubled.url)


def test_samples_in_any_order_twice_and_out_of_the_window_are_sorted_out(
    troubled: Troubled,
) -> None:
    mixed = [[1045.0, "4"], [1015.0, "2"], [1030.0, "3"], [1015.0, "9"], [1000.0, "1"],
             [-5.0, "0"], [1e300, "0"], [999.9, "0"], [1060.1, "0"]]  # fmt: skip
    again = [[1000.0, "1"], [1015.0, "2"], [1030.0, "3"]]
    troubled.replies = [matrix((LABELS, mixed), (LABELS, again))]
    (one,) = join(pull(troubled.url).series, 15.0).series
    assert (one.times, one.values) == ((1000.0, 1015.0, 1030.0, 1045.0), (1.0, 2.0, 3.0, 4.0))
    assert one.left_out == 4


def test_series_of_gpus_that_were_not_asked_for_are_left_out_and_said(troubled: Troubled) -> None:
    stranger, nobody = LABELS | {"UUID": OTHER}, {"__name__": "DCGM_FI_DEV_GPU_TEMP"}
    values = [[1010.0, "99"]]
    troubled.replies = [matrix((LABELS, [[1010.0, "41"]]), (stranger, values), (nobody, values))]
    pulled = pull(troubled.url)
    assert [one.labels["UUID"] for one in pulled.series] == [UUID]
    (note,) = pulled.warnings
    assert note.endswith("that were not asked for were left out.")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_signature_follows_a_redirect(
    troubled: Troubled, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.setattr(sigv4, "session", sigv4._Session().get)
    elsewhere = Troubled(replies=[matrix((LABELS, [[1010.0, "41"]]))])
    with serving(elsewhere):
        troubled.replies = [(status, {"Location": f"{elsewhere.url}/api/v1/query"}, b"")]
        with pytest.raises(Refused, match=f"it answered {status}"):
            pull(troubled.url, kind="amp", region="eu-central-1")
    assert len(troubled.forms) == 1
    assert elsewhere.forms == []


@pytest.mark.parametrize(
    ("said", "after_s"),
    [
        ("-5", 0.0), ("-inf", None), ("9" * 400, 3600.0), ("Fri, 31 Dec 9999 23:59:59 GMT", 3600.0),
        ("Mon, 01 Jan 0001 00:00:00 +0000", 0.0), ("soon", None), ("\xff", None), ("1e9", 3600.0),
        ("Thu, 99 Foo 2026 99:99:99 GMT", None), ("1_000", None),
    ],
)  # fmt: skip
def test_no_wait_that_is_asked_for_is_absurd(
    troubled: Troubled, said: str, after_s: float | None
) -> None:
    troubled.replies = [failure(429, "slow down", Retry_After=said)]
    with pytest.raises(Away) as raised:
        pull(troubled.url)
    assert raised.value.after_s == after_s


def good(_: dict[str, str]) -> Reply:
    return matrix((LABELS, [[1010.0, "41"]]))


def test_a_server_with_a_certificate_that_is_trusted_is_read(troubled_tls: Troubled) -> None:
    troubled_tls.replies = [good]
    assert pull(troubled_tls.url, ca_file=troubled_tls.ca_file).samples == 1


def test_a_certificate_of_strangers_or_of_another_host_is_not_trusted(
    troubled_tls: Troubled,
) -> None:
    troubled_tls.replies = [good]
    for url, trusted in (
        (troubled_tls.url, None),
        (troubled_tls.url.replace("127.0.0.1", "127.1"), troubled_tls.ca_file),
    ):
        with pytest.raises(Away, match="its certificate is not trusted"):
            pull(url, ca_file=trusted)
    assert troubled_tls.forms == []


def test_other_troubles_with_tls_are_told_in_words(troubled: Troubled, tmp_path: Path) -> None:
    plain = troubled.url.replace("http:", "https:")
    with pytest.raises(Away, match="does not speak TLS"):
        pull(plain)
    (tmp_path / "no.pem").write_text("no certificate")
    for file in (tmp_path / "missing.pem", tmp_path / "no.pem", tmp_path):
        with pytest.raises(Refused, match="certificates to trust cannot be read"):
            pull(plain, ca_file=str(file))


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", "x" * 70 + ".invalid", "-", "\u2603"])
def test_a_name_that_nobody_knows_is_told_in_words(host: str) -> None:
    with pytest.raises((Away, Refused)) as raised:
        pull(f"http://{host}:9090")
    assert "name" in str(raised.value) or "address" in str(raised.value)


def test_a_pull_of_many_refusals_ends_by_time_and_by_size(
    troubled: Troubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = Question((UUID,), 0.0, 86_400.0)
    monkeypatch.setattr(prometheus, "PULL_LIMIT_S", -1.0)
    with pytest.raises(Away, match="in whole within"):
        pull(troubled.url, long)
    monkeypatch.setattr(prometheus, "PULL_LIMIT_S", 60.0)
    monkeypatch.setattr(prometheus, "RECEIVED_LIMIT", 100_000)
    monkeypatch.setattr(bodies, "ANSWER_LIMIT", 30_000)
    troubled.replies = [matrix((LABELS, [[1.0, "41"]] * 1500))]
    with pytest.raises(Refused, match="MiB of answers"):
        pull(troubled.url, Question((UUID,), 0.0, 3 * 86_400.0))
    assert len(troubled.forms) < 20


def test_a_label_of_any_length_and_any_letters_comes_through(troubled: Troubled) -> None:
    labels = LABELS | {"pod": "p\x00" + "\u202e" * 9, "Hostname": "h" * 100_000}
    troubled.replies = [matrix((labels, [[1010.0, "41"]]))]
    (one,) = join(pull(troubled.url).series).series
    json.dumps(one.seen.pods).encode()
