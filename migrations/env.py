"""How does Alembic reach the database?"""

from __future__ import annotations

from alembic import context

from app.store.database import connect
from app.store.tables import metadata


def run() -> None:
    """Run the migrations in one transaction, waiting no longer than 5 s for any lock."""
    url = context.config.get_main_option("sqlalchemy.url")
    if url is None:
        raise RuntimeError("no database address was given")
    engine = connect(url)
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=metadata,
            compare_type=True,
            compare_server_default=True,
            render_as_batch=connection.dialect.name == "sqlite",
        )
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
    engine.dispose()


run()
