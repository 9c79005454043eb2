"""A process that has everything imported and forks a server on every line it reads.

A server that is to be killed two hundred times must start in milliseconds.  Each line of standard
input is a port; the answer is the child's process id.  The children live until they are killed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import uvicorn

from app.config import Settings
from app.main import create_app


def serve(url: str, folder: str, token: str, port: int) -> None:
    """Serve until killed."""
    settings = Settings(database_url=url, data_dir=Path(folder), admin_token=token)
    uvicorn.run(create_app(settings), host="127.0.0.1", port=port, log_level="error")


def main() -> None:
    """Fork a server for every port."""
    url, folder, token = sys.argv[1:4]
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            serve(url, folder, token, int(line))
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
