"""What becomes of a source that refuses, breaks off, tells half, or answers nonsense?"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time

import pytest

from app.sources import bodies, transport
from app.sources.ports import Away, Pulled, Question, Refused
from app.sources.registry import sources
from tests.sources.conftest import Reply, Troubled, failure, matrix

UUID = "GPU-a0000002-1111-4222-8333-000000000005"
LABELS = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "UUID": UUID, "gpu_uuid": UUID}
FOUND = matrix((LABELS, [[1010.0, "41"]]))
ASKED = Question((UUID,), 1000.0, 1600.0)


def pull(url: str, question: Question = ASKED, **more: object) -> Pulled:
    (one,) = sources({"alpine": [{"url": url, "timeout_s": 2, **more}]})["alpine"]
    try:
        return one.pull(question)
    finally:
        one.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_wait", lambda tried, after_s: after_s or 0.01)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_failure_that_passes_is_tried_again(troubled: Troubled, status: int) -> None:
    troubled.replies = [failure(status, "busy"), failure(status, "busy"), FOUND]
    assert pull(troubled.url).samples == 1
    assert len(troubled.forms) == 4


def test_a_failure_that_stays_is_left_for_later(troubled: Troubled) -> None:
    troubled.replies = [failure(503, "starting")]
    with pytest.raises(Away, match="it answered 503") as raised:
        pull(troubled.url)
    assert (len(troubled.forms), raised.value.after_s) == (transport.TRIES, None)


def test_a_source_that_asks_for_a_long_wait_is_left_alone(troubled: Troubled) -> None:
    troubled.replies = [failure(429, "slow down", Retry_After="120")]
    with pytest.raises(Away) as raised:
        pull(troubled.url)
    assert (len(troubled.forms), raised.value.after_s) == (1, 120.0)


def test_a_wait_may_be_a_date(troubled: Troubled) -> None:
    when = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 300))
    troubled.replies = [failure(503, "", Retry_After=when)]
    with pytest.raises(Away) as raised:
        pull(troubled.url)
    assert raised.value.after_s == pytest.approx(300, abs=5)


@pytest.mark.parametrize(
    ("status", "says"),
    [(401, "does not know who asks"), (403, "does not allow it"), (400, "it answered 400")],
)
def test_a_refusal_is_final_and_says_why(troubled: Troubled, status: int, says: str) -> None:
    troubled.replies = [failure(status, "no  such\nright")]
    with pytest.raises(Refused, match=says) as raised:
        pull(troubled.url)
    assert "“no such right”" in str(raised.value)
    assert len(troubled.forms) == 1


def test_a_signature_that_is_too_old_is_made_anew(troubled: Troubled) -> None:
    body = json.dumps({"message": "Signature expired: 20260302T100000Z is now earlier"}).encode()
    troubled.replies = [(403, {}, body), FOUND]
    assert pull(troubled.url).samples == 1


# What servers say of a question that is too large: each of them is asked for less.
TOO_LARGE = [
    failure(422, "query processing would load too many samples into memory in query execution"),
    failure(400, "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing"),
    failure(422, "the query time range exceeds the limit (query length: 72h, limit: 24h)"),
    failure(422, "the query hit the max number of series limit (limit: 1000 series)"),
    failure(422, "cannot select more than -search.maxSamplesPerQuery=1000 samples"),
    failure(413, "too large"),
    (413, {}, b"<html>413</html>"),
    failure(503, "query timed out in expression evaluation"),
]


@pytest.mark.parametrize("refusal", TOO_LARGE)
def test_what_is_too_much_is_asked_for_in_parts(troubled: Troubled, refusal: Reply) -> None:
    def answer(form: dict[str, str]) -> Reply:
        milliseconds = int(form["query"].rsplit("[", 1)[1].removesuffix("ms]"))
        if milliseconds > 200_000:
            return refusal
        end = float(form["time"])
        return matrix((LABELS, [[end - 10, "41"], [end, "42"]]))

    troubled.replies = [answer]
    pulled = pull(troubled.url)
    times = sorted(at for one in pulled.series for at, _ in one.samples)
    assert len(times) == 2 * 4  # a pair in each of four pieces
    assert (times[0], times[-1]) == (1140.0, 1600.0)


def test_a_source_that_refuses_any_size_is_refused_in_the_end(troubled: Troubled) -> None:
    troubled.replies = [failure(422, "too many samples")]
    with pytest.raises(Refused, match="even a minute of one GPU: too many samples"):
        pull(troubled.url, Question((UUID, UUID[:-1] + "6"), 0.0, 86_400.0))
    assert len(troubled.forms) < 60


@pytest.mark.parametrize(
    ("reply", "partial", "warnings"),
    [
        (matrix((LABELS, []), isPartial=True), True, ()),
        (matrix((LABELS, []), warnings=["partial response: store b is away"]), True,
         ("partial response: store b is away",)),
        (matrix((LABELS, []), infos=["metric might not be a counter"]), False,
         ("metric might not be a counter",)),
    ],
)  # fmt: skip
def test_what_a_source_says_beside_is_kept(
    troubled: Troubled, reply: Reply, partial: bool, warnings: tuple[str, ...]
) -> None:
    troubled.replies = [reply]
    pulled = pull(troubled.url)
    assert (pulled.partial, pulled.warnings) == (partial, warnings)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b"<html>", b'{"status":"success"}', b"[" * 100_000,
        b'{"status":"success","data":{"resultType":"vector","result":[]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":{}}}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{}]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[1]}]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},'
        b'"values":[["x","1"]]}]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},'
        b'"values":[[1,"one"]]}]}}',
    ],
)  # fmt: skip
def test_nonsense_is_refused(troubled: Troubled, body: bytes) -> None:
    troubled.replies = [(200, {}, body)]
    with pytest.raises(Refused):
        pull(troubled.url)


def test_nan_and_infinity_are_values_and_not_errors(troubled: Troubled) -> None:
    values = [[1010.0, "NaN"], [1020.0, "+Inf"], [1030.0, "-Inf"], [1040.0, "9.223372036854776e18"]]
    troubled.replies = [matrix((LABELS, values))]
    samples = pull(troubled.url).series[0].samples
    assert [str(value) for _, value in samples] == ["nan", "inf", "-inf", "9.223372036854776e+18"]


def test_an_answer_without_end_is_asked_for_in_parts(
    troubled: Troubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "ANSWER_LIMIT", 1000)
    troubled.replies = [(200, {}, b" " * 5000)]
    with pytest.raises(Refused, match="even a minute"):
        pull(troubled.url)


def test_a_redirect_is_not_followed(troubled: Troubled) -> None:
    troubled.replies = [(307, {"Location": "http://127.0.0.1:9/steal"}, b"")]
    with pytest.raises(Refused, match="it answered 307"):
        pull(troubled.url, headers={"Authorization": "Bearer secret"})


def test_nobody_there_is_away() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(Away, match="refused"):
        pull(url)


def test_silence_is_away_within_its_time_limit() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(Away, match="no answer within the time limit"):
            pull(url, timeout_s=0.3)
        assert time.monotonic() - began < 20


def test_an_answer_that_breaks_off_is_away(troubled: Troubled) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def half() -> None:
            for _ in range(transport.TRIES):
                connection, _ = server.accept()
                connection.recv(65536)
                connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"status"')
                connection.close()

        thread = threading.Thread(target=half)
        thread.start()
        with pytest.raises(Away, match="broke off"):
            pull(f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join(5)


def test_a_source_that_drips_is_given_up() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        stopping = threading.Event()

        def drip() -> None:
            for _ in range(transport.TRIES):
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                    while not stopping.wait(0.05):
                        connection.sendall(b" ")

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(Away, match="no answer within the time limit"):
            pull(f"http://127.0.0.1:{server.getsockname()[1]}", timeout_s=0.2)
        stopping.set()
        thread.join(10)


@pytest.mark.parametrize(
    ("said", "after_s"), [("inf", None), ("nan", None), ("1e300", 3600.0), ("900", 900.0)]
)
def test_no_source_sends_itself_away_for_ever(
    troubled: Troubled, said: str, after_s: float | None
) -> None:
    troubled.replies = [failure(503, "later", Retry_After=said)]
    with pytest.raises(Away) as raised:
        pull(troubled.url)
    assert raised.value.after_s == after_s


@pytest.mark.parametrize(
    "said",
    [
        "The request signature does not match. The Canonical String for this request should have "
        "been 'POST x-amz-security-token:secret-of-ours",
        "invalid header Authorization: secret-of-ours",
        "invalid header Authorization: Bearer secret-of-ours",
        "cannot verify Bearer secret-of-ours",
        "x-amz-security-token=secret-of-ours is not known",
    ],
)
def test_a_refusal_does_not_repeat_what_we_sent_in_confidence(
    troubled: Troubled, said: str
) -> None:
    troubled.replies = [failure(403, said)]
    with pytest.raises(Refused) as raised:
        pull(troubled.url)
    assert "secret-of-ours" not in str(raised.value)
