"""How does a database get the tables of this version?"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config

from app.store.database import normalised

MIGRATIONS = Path(__file__).parents[2] / "migrations"


def configuration(url: str) -> Config:
    """Point Alembic at our migrations and at a database."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    # Percent signs of an encoded password would be read as references by configparser.
    address = normalised(url).render_as_string(hide_password=False)
    config.set_main_option("sqlalchemy.url", address.replace("%", "%%"))
    return config


def upgrade(url: str) -> None:
    """Bring the database to the newest version; does nothing when it is there already."""
    path = normalised(url)
    if path.get_backend_name() == "sqlite" and path.database and path.database != ":memory:":
        Path(path.database).parent.mkdir(parents=True, exist_ok=True)
    command.upgrade(configuration(url), "head")
