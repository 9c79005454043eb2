"""What does one HTTP request ask for?"""

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.doubles.kubernetes.access import User
from tests.doubles.kubernetes.answers import Json, bad_request, unsupported_body
from tests.doubles.kubernetes.protobuf import read_access_review

_JSON_TYPES = ("", "application/json")
_PROTOBUF = "application/vnd.kubernetes.protobuf"


@dataclass
class Asked:
    """One request; header names are lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    user: User = field(default_factory=lambda: User(""))

    @cached_property
    def path(self) -> str:
        return urlsplit(self.target).path

    @cached_property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "")

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in ("1", "true")

    @property
    def manager(self) -> str:
        """Give the field manager; the program's name where none is given."""
        agent = self.headers.get("user-agent", "unknown").split("/")[0]
        return self.query.get("fieldManager") or agent

    @property
    def is_dry_run(self) -> bool:
        asked = self.query.get("dryRun", "")
        if asked not in ("", "All"):
            raise bad_request(f'Invalid value: "{asked}": unsupported dry run')
        return asked == "All"

    @property
    def is_strict(self) -> bool:
        return self.query.get("fieldValidation") == "Strict"

    def json_body(self) -> Json:
        """Parse the body of a POST, PUT or DELETE."""
        if self.content_type == _PROTOBUF:
            return read_access_review(self.body)
        if self.content_type not in _JSON_TYPES:
            raise unsupported_body()
        document = self.document()
        if not isinstance(document, dict):
            raise bad_request("the body of the request is no object")
        return document

    def document(self) -> Any:
        """Parse the body as JSON."""
        try:
            return json.loads(self.body or b"{}")
        except ValueError as error:
            raise bad_request(f"couldn't decode the body: {error}") from error
