"""What does each way in which a call to AWS fails mean: no, or not now?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from app.sources.ports import Away, Refused
from app.sources.texts import one_line

PASSES = frozenset({"ServiceUnavailableException", "ExpiredTokenException", "RequestExpired"})
"""What a service says of itself, or of credentials that are refreshed by the next time."""
DENIED = frozenset({"AccessDeniedException", "AccessDenied", "UnrecognizedClientException"})
MISSING = frozenset({"ResourceNotFoundException", "ResourceNotFound"})
CONNECT_S = 5.0

_making = threading.Lock()  # botocore does not make clients in two threads at once


class Service:
    """One service in one region; its client is made at first use. `what` names it in sentences."""

    def __init__(
        self, name: str, what: str, region: str, timeout_s: float, endpoint_url: str | None = None
    ) -> None:
        self._name, self._what, self._region = name, what, region
        self._timeout_s, self._endpoint_url = timeout_s, endpoint_url
        self._client: Any = None

    def close(self) -> None:
        """Close connections; the next call opens new ones."""
        with _making:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def call(
        self, operation: str, asked: Mapping[str, Any], known: Callable[[str, str], str | None]
    ) -> Mapping[str, Any]:
        """Call once, throttling aside; raises `Refused` or `Away`.

        `known` gives the sentence for an error code and its message, None for the usual one.
        """
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

        try:
            answer: Mapping[str, Any] = getattr(self._made(), operation)(**asked)
        except ClientError as error:
            raise self._said_no(error.response, known) from None
        except NoCredentialsError:
            raise Refused("No AWS credentials are to be found here.") from None
        except BotoCoreError as error:
            raise Away(f"{self._what} cannot be asked: {one_line(str(error))}.") from None
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            # An address that is none, or an answer of a form that botocore does not expect.
            kind = type(error).__name__
            raise Refused(f"{self._what} cannot be asked or understood: {kind}.") from None
        return answer

    def _made(self) -> Any:
        from botocore.config import Config
        from botocore.session import get_session

        with _making:
            if self._client is None:
                patience = Config(
                    connect_timeout=min(self._timeout_s, CONNECT_S),
                    read_timeout=self._timeout_s,
                    # Throttling is usual: a few calls a second are all that an account may make.
                    retries={"mode": "standard", "total_max_attempts": 3},
                )
                self._client = get_session().create_client(
                    self._name, region_name=self._region, endpoint_url=self._endpoint_url,
                    config=patience,
                )  # fmt: skip
            return self._client

    def _said_no(
        self, response: Mapping[str, Any], known: Callable[[str, str], str | None]
    ) -> Refused | Away:
        said = response.get("Error", {})
        code, message = one_line(str(said.get("Code"))), one_line(str(said.get("Message")))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
        told = known(code, message)
        if told is not None:
            return Refused(told)
        text = f"{self._what} does not answer: {code}, {message}"
        passes = status >= 500 or status == 429 or "Throttl" in code or code in PASSES
        return Away(text) if passes else Refused(text)
