"""Keep telemetry around alarms."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from app.store.columns import Instant

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the tables."""
    op.create_table(
        "telemetry_asks",
        sa.Column("alarm_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("wanted_at", Instant(), nullable=False),
        sa.Column("planned_at", Instant(), nullable=True),
        sa.Column("left_out", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("alarm_id", name=op.f("pk_telemetry_asks")),
    )
    with op.batch_alter_table("telemetry_asks", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_telemetry_asks_state_wanted_at"), ["state", "wanted_at"], unique=False
        )

    op.create_table(
        "telemetry_blocks",
        sa.Column("window_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("field_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("codec", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("window_id", "field_id", "part", name=op.f("pk_telemetry_blocks")),
    )
    op.create_table(
        "telemetry_readings",
        sa.Column("alarm_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("gpu_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("headline", sa.Text(), nullable=False),
        sa.Column("reading", sa.Text(), nullable=False),
        sa.Column("whole", sa.Boolean(), nullable=False),
        sa.Column("made_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("alarm_id", "gpu_id", name=op.f("pk_telemetry_readings")),
    )
    with op.batch_alter_table("telemetry_readings", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_telemetry_readings_gpu_id_made_at"), ["gpu_id", "made_at"], unique=False
        )

    op.create_table(
        "telemetry_wants",
        sa.Column("alarm_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("gpu_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("window_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("alarm_id", "gpu_id", "window_id", name=op.f("pk_telemetry_wants")),
    )
    with op.batch_alter_table("telemetry_wants", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_telemetry_wants_window_id"), ["window_id"], unique=False
        )

    op.create_table(
        "telemetry_windows",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("gpu_id", sa.BigInteger(), nullable=False),
        sa.Column("gpu_uuid", sa.Text(), nullable=False),
        sa.Column("start_at", Instant(), nullable=False),
        sa.Column("end_at", Instant(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("next_at", Instant(), nullable=False),
        sa.Column("asked_at", Instant(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_at", Instant(), nullable=True),
        sa.Column("pulled_at", Instant(), nullable=True),
        sa.Column("whole", sa.Boolean(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("level", sa.Text(), nullable=True),
        sa.Column("interval_s", sa.Float(), nullable=True),
        sa.Column("queries", sa.Integer(), nullable=False),
        sa.Column("samples", sa.BigInteger(), nullable=False),
        sa.Column("partial", sa.Boolean(), nullable=False),
        sa.Column("warnings", sa.Text(), nullable=True),
        sa.Column("said", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_telemetry_windows")),
    )
    with op.batch_alter_table("telemetry_windows", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_telemetry_windows_gpu_id_start_at"), ["gpu_id", "start_at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_telemetry_windows_state_next_at"), ["state", "next_at"], unique=False
        )


def downgrade() -> None:
    """Change them back."""
    with op.batch_alter_table("telemetry_windows", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_telemetry_windows_state_next_at"))
        batch_op.drop_index(batch_op.f("ix_telemetry_windows_gpu_id_start_at"))

    op.drop_table("telemetry_windows")
    with op.batch_alter_table("telemetry_wants", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_telemetry_wants_window_id"))

    op.drop_table("telemetry_wants")
    with op.batch_alter_table("telemetry_readings", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_telemetry_readings_gpu_id_made_at"))

    op.drop_table("telemetry_readings")
    op.drop_table("telemetry_blocks")
    with op.batch_alter_table("telemetry_asks", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_telemetry_asks_state_wanted_at"))

    op.drop_table("telemetry_asks")
