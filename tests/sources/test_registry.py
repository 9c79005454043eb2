"""Is each entry of the setting understood, and a wrong one told without stopping the service?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.sources.ports import About, Question, Refused
from app.sources.registry import sources
from tests.sources.conftest import Troubled, matrix

ASKED = Question(("GPU-a0000002-1111-4222-8333-000000000005",), 1000.0, 1600.0)


def test_a_cluster_has_its_sources_in_order_and_others_have_none() -> None:
    made = sources({"alpine": [{"url": "http://a:9090/"}, {"url": "http://b", "kind": "mimir"}]})
    assert [one.about().name for one in made["alpine"]] == ["alpine/1", "alpine/2"]
    assert made["alpine"][0].about() == About("alpine/1", "http://a:9090/")
    assert "elsewhere" not in made
    made.close()


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({}, "neither url nor eks_cluster"),
        ({"url": "ftp://a"}, "no http address"),
        ({"url": "http://["}, "no http address"),
        ({"url": "http://a", "kind": "graphite"}, "kind is one of"),
        ({"url": "http://a", "kind": "amp"}, "amp needs its region"),
        ({"eks_cluster": "c"}, "eks_cluster needs a region"),
        ({"url": "http://a", "level": "all"}, "level is basic, advanced or disabled"),
        ({"url": "http://a", "interval_s": 0}, "interval_s"),
        ({"url": "http://a", "timeout_s": "long"}, "timeout_s"),
        ({"url": "http://a", "headers": ["x"]}, "headers are no object"),
        ({"url": "http://a", "colour": "red"}, "unknown keys: colour"),
    ],
)
def test_a_wrong_entry_refuses_and_says_why(entry: dict[str, Any], says: str) -> None:
    (one,) = sources({"alpine": [entry]})["alpine"]
    with pytest.raises(Refused, match=says):
        one.pull(ASKED)
    assert one.about().level is None


def test_headers_and_a_token_go_along(troubled: Troubled, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    troubled.replies = [matrix()]
    entry = {"url": troubled.url, "headers": {"X-Scope-OrgID": "gpu"}, "token_file": str(token)}
    (one,) = sources({"alpine": [entry]})["alpine"]
    one.pull(ASKED)
    assert troubled.headers[-1]["X-Scope-OrgID"] == "gpu"
    assert troubled.headers[-1]["Authorization"] == "Bearer first"
    token.write_text("second")
    one.pull(ASKED)
    assert troubled.headers[-1]["Authorization"] == "Bearer second"
    token.unlink()
    with pytest.raises(Refused, match="token cannot be read"):
        one.pull(ASKED)
    one.close()


@pytest.mark.parametrize(("kind", "key"), [("thanos", "partial_response"), ("mimir", None)])
def test_each_kind_is_asked_in_its_way(troubled: Troubled, kind: str, key: str | None) -> None:
    troubled.replies = [matrix()]
    (one,) = sources({"alpine": [{"url": troubled.url, "kind": kind}]})["alpine"]
    one.pull(ASKED)
    assert troubled.forms[0]["timeout"] == "30000ms"
    assert ("partial_response" in troubled.forms[0]) == (key is not None)
    one.close()
