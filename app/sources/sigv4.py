"""How is a request to Amazon Managed Prometheus signed?"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from app.sources.ports import Away, Refused
from app.sources.transport import Signer

SERVICE = "aps"  # the client is called `amp`, the signature and the rights `aps`


class _Session:
    """The machine's AWS credentials, found once and refreshed by botocore when they expire."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Any = None

    def get(self) -> Any:
        with self._lock:
            if self._session is None:
                from botocore.session import get_session

                self._session = get_session()
            return self._session


session = _Session().get


def signed(region: str, headers: Mapping[str, str]) -> Signer:
    """Make a signer for a region; it signs the exact bytes that are sent, anew for every try."""

    def sign(url: str, body: bytes, plain: Mapping[str, str]) -> Mapping[str, str]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError, ClientError

        request = AWSRequest("POST", url, data=body, headers={**plain, **headers})
        try:
            credentials = session().get_credentials()
            if credentials is None:
                raise Refused("No AWS credentials are to be found here.")
            SigV4Auth(credentials, SERVICE, region).add_auth(request)
        except (BotoCoreError, ClientError) as error:
            # Credentials are fetched and refreshed here, from services that can be away.
            why = type(error).__name__
            raise Away(f"AWS credentials cannot be had now: {why}.") from None
        return dict(request.headers.items())

    return sign
