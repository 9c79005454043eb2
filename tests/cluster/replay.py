"""How are recorded requests played to the double?"""

import http.client
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.doubles.kubernetes import KubernetesDouble

DATA = Path(__file__).parent.parent / "data" / "kubernetes"
FIRST_VERSION = 189  # The version of the first object in the recording.
OTHER_TOKEN = "token-without-rights"
SECRET = "TOKEN"  # What stands in the recording for a token.


def exchanges(name: str) -> list[dict[str, Any]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def recording() -> list[dict[str, Any]]:
    """Give all exchanges in the order in which they were made: kubectl ran before the client."""
    server = exchanges("kube-apiserver-1.20.2.ndjson")
    middle = next(i for i, one in enumerate(server) if one["note"].startswith("POST with no"))
    kubectl = exchanges("kubectl-1.35-against-1.20.2.ndjson")
    return server[:middle] + kubectl + server[middle:]


@dataclass
class Replay:
    """Plays requests to the double; versions and tokens of the recording are translated."""

    double: KubernetesDouble
    versions: dict[str, str] = field(default_factory=dict)
    continues: dict[str, str] = field(default_factory=dict)
    token: str = ""

    def send(self, request: dict[str, Any], note: str) -> tuple[int, Any]:
        parts = urlsplit(self.double.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        headers = {"User-Agent": _program(note)}
        if request.get("accept"):
            headers["Accept"] = request["accept"]
        if request["content_type"]:
            headers["Content-Type"] = request["content_type"]
        token = self._token_of(request["user"], note)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection.request(
            request["method"], self._path(request["path"]), self._body(request["body"]), headers
        )
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, _parse(text)

    def _token_of(self, user: str | None, note: str) -> str:
        if user == "other":
            return "a-token-that-nobody-has" if note == "bad token" else OTHER_TOKEN
        return "admin-token" if user == "admin" else ""

    def _path(self, path: str) -> str:
        for recorded, ours in self.continues.items():
            path = path.replace(f"continue={recorded}", f"continue={ours}")
        for recorded, ours in self.versions.items():
            if f"resourceVersion={recorded}&" in path + "&":
                return path.replace(f"resourceVersion={recorded}", f"resourceVersion={ours}")
        return path

    def _body(self, body: Any) -> bytes | None:
        if body is None:
            return None
        if isinstance(body, str):
            return body.encode()
        translated = json.loads(json.dumps(body))
        if isinstance(translated, dict):
            metadata = translated.get("metadata", {})
            version = metadata.get("resourceVersion")
            if version is not None:
                metadata["resourceVersion"] = self.versions.get(version, version)
            if translated.get("spec", {}).get("token") == SECRET:
                translated["spec"]["token"] = self.token
        return json.dumps(translated).encode()

    def learn(self, recorded: Any, ours: Any) -> None:
        """Remember which version of ours stands for which of the recording."""
        if not (isinstance(recorded, dict) and isinstance(ours, dict)):
            return
        theirs, mine = recorded.get("metadata", {}), ours.get("metadata", {})
        if "resourceVersion" in theirs and "resourceVersion" in mine:
            self.versions[theirs["resourceVersion"]] = mine["resourceVersion"]
        if "continue" in theirs:
            self.continues[theirs["continue"]] = mine["continue"]
        if recorded.get("kind") == "TokenRequest":
            self.token = ours["status"]["token"]


def _program(note: str) -> str:
    """Name the program that sent a request: the server takes its name for the manager's."""
    if note.startswith("kubectl"):
        return "kubectl/v1.35.2"
    return "OpenAPI-Generator/37.0.1" if note.startswith("python client") else "Python-urllib/3.11"


def _parse(text: str) -> Any:
    """Read an answer: an object, a line an event, plain text, or nothing."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return text
