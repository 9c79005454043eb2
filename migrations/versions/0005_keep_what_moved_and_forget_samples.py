"""Keep what moved in each window, and when retention deleted samples."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from app.store.columns import Instant

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the tables."""
    op.create_table(
        "telemetry_moved",
        sa.Column("gpu_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("window_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("start_at", Instant(), nullable=False),
        sa.Column("end_at", Instant(), nullable=False),
        sa.Column("looked_at", sa.Text(), nullable=False),
        sa.Column("moved", sa.Text(), nullable=False),
        sa.Column("board", sa.Text(), nullable=False),
        sa.Column("hardware", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("gpu_id", "window_id", name=op.f("pk_telemetry_moved")),
    )
    with op.batch_alter_table("telemetry_moved", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_telemetry_moved_gpu_id_start_at"), ["gpu_id", "start_at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_telemetry_moved_window_id"), ["window_id"], unique=False
        )

    with op.batch_alter_table("telemetry_windows", schema=None) as batch_op:
        batch_op.add_column(sa.Column("purged_at", Instant(), nullable=True))
        batch_op.create_index(
            batch_op.f("ix_telemetry_windows_start_at_id"), ["start_at", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_telemetry_windows_purged_at_pulled_at"),
            ["purged_at", "pulled_at"],
            unique=False,
        )


def downgrade() -> None:
    """Change them back."""
    with op.batch_alter_table("telemetry_windows", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_telemetry_windows_purged_at_pulled_at"))
        batch_op.drop_index(batch_op.f("ix_telemetry_windows_start_at_id"))
        batch_op.drop_column("purged_at")

    with op.batch_alter_table("telemetry_moved", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_telemetry_moved_window_id"))
        batch_op.drop_index(batch_op.f("ix_telemetry_moved_gpu_id_start_at"))

    op.drop_table("telemetry_moved")
