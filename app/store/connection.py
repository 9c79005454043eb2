"""What do the functions of app.store take as their first argument?

The layers above name the type in signatures and need nothing else of the database library.
"""

from __future__ import annotations

from sqlalchemy.engine import Connection

__all__ = ["Connection"]
