"""Know condemned GPUs when they come back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from app.store.columns import Instant

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the tables."""
    op.create_table(
        "condemned_gpus",
        sa.Column("gpu_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("node_id", sa.BigInteger(), nullable=True),
        sa.Column("instance_id", sa.Text(), nullable=True),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("proposal_id", sa.BigInteger(), nullable=True),
        sa.Column("lifted_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("gpu_id", name=op.f("pk_condemned_gpus")),
    )
    with op.batch_alter_table("condemned_gpus", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_condemned_gpus_case_id"), ["case_id"], unique=False)

    op.create_table(
        "condemned_sightings",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("gpu_id", sa.BigInteger(), nullable=False),
        sa.Column("certain", sa.Boolean(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("node_id", sa.BigInteger(), nullable=True),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("first_at", Instant(), nullable=False),
        sa.Column("last_at", Instant(), nullable=False),
        sa.Column("starts", sa.Integer(), nullable=False),
        sa.Column("told_at", Instant(), nullable=True),
        sa.Column("case_id", sa.BigInteger(), nullable=True),
        sa.Column("acknowledged_by", sa.Text(), nullable=True),
        sa.Column("acknowledged_at", Instant(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("withdrawn_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_condemned_sightings")),
    )
    with op.batch_alter_table("condemned_sightings", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_condemned_sightings_acknowledged_at_withdrawn_at"),
            ["acknowledged_at", "withdrawn_at"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_condemned_sightings_gpu_id"), ["gpu_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_condemned_sightings_told_at"), ["told_at"], unique=False
        )


def downgrade() -> None:
    """Change them back."""
    with op.batch_alter_table("condemned_sightings", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_condemned_sightings_told_at"))
        batch_op.drop_index(batch_op.f("ix_condemned_sightings_gpu_id"))
        batch_op.drop_index(batch_op.f("ix_condemned_sightings_acknowledged_at_withdrawn_at"))

    op.drop_table("condemned_sightings")
    with op.batch_alter_table("condemned_gpus", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_condemned_gpus_case_id"))

    op.drop_table("condemned_gpus")
