"""Keep further evidence about nodes around alarms."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from app.store.columns import Instant

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the tables."""
    op.create_table(
        "node_evidence",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("node_id", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.Text(), nullable=True),
        sa.Column("instance_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("start_at", Instant(), nullable=False),
        sa.Column("end_at", Instant(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("next_at", Instant(), nullable=False),
        sa.Column("asked_at", Instant(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_at", Instant(), nullable=True),
        sa.Column("read_at", Instant(), nullable=True),
        sa.Column("whole", sa.Boolean(), nullable=False),
        sa.Column("cut", sa.Boolean(), nullable=False),
        sa.Column("said", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_node_evidence")),
    )
    with op.batch_alter_table("node_evidence", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_node_evidence_state_next_at"), ["state", "next_at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_node_evidence_node_id_start_at"), ["node_id", "start_at"], unique=False
        )

    op.create_table(
        "node_evidence_wants",
        sa.Column("alarm_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("evidence_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("alarm_id", "evidence_id", name=op.f("pk_node_evidence_wants")),
    )
    with op.batch_alter_table("node_evidence_wants", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_node_evidence_wants_evidence_id"), ["evidence_id"], unique=False
        )

    op.create_table(
        "node_records",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("evidence_id", sa.BigInteger(), nullable=False),
        sa.Column("node_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("received_at", Instant(), nullable=True),
        sa.Column("kept_at", Instant(), nullable=False),
        sa.Column("stream", sa.Text(), nullable=True),
        sa.Column("event_id", sa.Text(), nullable=True),
        sa.Column("other", sa.Text(), nullable=True),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_node_records")),
    )
    with op.batch_alter_table("node_records", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_node_records_node_id_at"), ["node_id", "at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_node_records_evidence_id"), ["evidence_id"], unique=False
        )


def downgrade() -> None:
    """Change them back."""
    with op.batch_alter_table("node_records", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_node_records_evidence_id"))
        batch_op.drop_index(batch_op.f("ix_node_records_node_id_at"))

    op.drop_table("node_records")
    with op.batch_alter_table("node_evidence_wants", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_node_evidence_wants_evidence_id"))

    op.drop_table("node_evidence_wants")
    with op.batch_alter_table("node_evidence", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_node_evidence_node_id_start_at"))
        batch_op.drop_index(batch_op.f("ix_node_evidence_state_next_at"))

    op.drop_table("node_evidence")
