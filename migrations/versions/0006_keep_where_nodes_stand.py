"""Keep where each node of a cluster stands, and which proposal a note is about."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from app.store.columns import Instant

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the tables."""
    op.create_table(
        "node_places",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("instance_id", sa.Text(), nullable=True),
        sa.Column("gpu", sa.Boolean(), nullable=False),
        sa.Column("protected", sa.Text(), nullable=True),
        sa.Column("instance_group", sa.Text(), nullable=True),
        sa.Column("zone", sa.Text(), nullable=True),
        sa.Column("network", sa.Text(), nullable=True),
        sa.Column("rack", sa.Text(), nullable=True),
        sa.Column("out", sa.Text(), nullable=True),
        sa.Column("read_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "name", name=op.f("pk_node_places")),
    )
    with op.batch_alter_table("node_places", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_node_places_cluster_out"), ["cluster", "out"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_node_places_instance_id"), ["instance_id"], unique=False
        )

    with op.batch_alter_table("notes", schema=None) as batch_op:
        batch_op.add_column(sa.Column("proposal_id", sa.BigInteger(), nullable=True))
        batch_op.create_index(batch_op.f("ix_notes_proposal_id"), ["proposal_id"], unique=False)


def downgrade() -> None:
    """Change them back."""
    with op.batch_alter_table("notes", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_notes_proposal_id"))
        batch_op.drop_column("proposal_id")

    with op.batch_alter_table("node_places", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_node_places_instance_id"))
        batch_op.drop_index(batch_op.f("ix_node_places_cluster_out"))

    op.drop_table("node_places")
