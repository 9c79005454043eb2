"""Is anything written down that must not be: a registry's host, an unfinished note, a skip?"""

from __future__ import annotations

import re

import pytest

from tests.structure.source import ROOT, text_files

# The bracketed letters keep these patterns from finding themselves.
FORBIDDEN = {
    "a package registry's host": (
        r"p[y]pi\.org|python[h]osted\.org|registry\.n[p]mjs|n[p]mjs\.(org|com)|un[p]kg\.com"
        r"|js[d]elivr|cdn\.pl[o]t\.ly|deb\.d[e]bian\.org|proxy\.go[l]ang\.org"
    ),
    "an unfinished note": r"\bTO[D]O\b|\bFIX[M]E\b|\bXX[X]\b",
    "a folder beside the project": r"\.\./s[h]ared\b|[\"'/]s[h]ared/",
    "a path of one machine": r"(?<![\w.~<-])/(wor[k]|hom[e]|Use[r]s|roo[t])/\w",
}
# A test that does not run proves nothing.
SKIPS = (
    r"pytest\.(s[k]ip|xf[a]il|import[o]rskip)\b|mark\.(s[k]ip|s[k]ipif|xf[a]il)\b"
    r"|@unit[t]est\.s[k]ip"
)


def _found(pattern: str, only: str = "") -> list[str]:
    compiled = re.compile(pattern)
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in text_files()
        if name.startswith(only)
        for number, line in enumerate(text.splitlines(), 1)
        if compiled.search(line)
    ]


@pytest.mark.parametrize("what", sorted(FORBIDDEN))
def test_no_file_holds(what: str) -> None:
    assert _found(FORBIDDEN[what]) == []


def test_no_test_is_skipped() -> None:
    assert _found(SKIPS, only="tests/") == []


@pytest.mark.parametrize("name", sorted(p.name for p in ROOT.glob("requirements*.lock")))
def test_a_lock_file_holds_no_address(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text


def test_the_patterns_find_what_they_are_for() -> None:
    hosts = re.compile(FORBIDDEN["a package registry's host"])
    assert hosts.search("https://" + "py" + "pi.org/simple")
    assert re.search(FORBIDDEN["an unfinished note"], "# TO" + "DO: later")
    assert re.search(FORBIDDEN["a folder beside the project"], 'open("../sha' + 'red/x")')
    assert re.search(SKIPS, "@pytest.mark.sk" + "ip")


def test_no_module_is_named_after_nothing_in_particular() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}
    found = [name for name, _ in text_files() if vague & set(re.split(r"[/._]", name.lower()))]
    assert found == []
