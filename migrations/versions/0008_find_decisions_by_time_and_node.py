"""Find what was decided lately, and what was decided about a machine, without reading it all."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the tables."""
    with op.batch_alter_table("proposals", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_proposals_decided_at"), ["decided_at"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_proposals_cluster_node_name"), ["cluster", "node_name"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_proposals_instance_id"), ["instance_id"], unique=False)


def downgrade() -> None:
    """Change them back."""
    with op.batch_alter_table("proposals", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_proposals_instance_id"))
        batch_op.drop_index(batch_op.f("ix_proposals_cluster_node_name"))
        batch_op.drop_index(batch_op.f("ix_proposals_decided_at"))
