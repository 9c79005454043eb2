"""Keep the life of an action."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from app.store.columns import Instant

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the tables."""
    op.create_table(
        "approval_batches",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("asked", sa.Integer(), nullable=False),
        sa.Column("kept", sa.Integer(), nullable=False),
        sa.Column("members", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approval_batches")),
    )
    op.create_table(
        "hardware_tests",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("node_id", sa.BigInteger(), nullable=True),
        sa.Column("instance_id", sa.Text(), nullable=True),
        sa.Column("gpu_id", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("checks", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("recall", sa.Float(), nullable=True),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("begun_at", Instant(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("proposal_id", sa.BigInteger(), nullable=True),
        sa.Column("details", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hardware_tests")),
    )
    with op.batch_alter_table("hardware_tests", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_hardware_tests_gpu_id_at"), ["gpu_id", "at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_hardware_tests_instance_id_at"), ["instance_id", "at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_hardware_tests_node_id_at"), ["node_id", "at"], unique=False
        )

    op.create_table(
        "machine_links",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("old_instance_id", sa.Text(), nullable=False),
        sa.Column("new_instance_id", sa.Text(), nullable=False),
        sa.Column("old_node", sa.Text(), nullable=True),
        sa.Column("new_node", sa.Text(), nullable=True),
        sa.Column("how", sa.Text(), nullable=False),
        sa.Column("seen_at", Instant(), nullable=False),
        sa.Column("proposal_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_machine_links")),
    )
    with op.batch_alter_table("machine_links", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_machine_links_new_instance_id"), ["new_instance_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_machine_links_old_instance_id"), ["old_instance_id"], unique=False
        )

    op.create_table(
        "targeted_audits",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("proposal_id", sa.BigInteger(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=True),
        sa.Column("job", sa.Text(), nullable=True),
        sa.Column("node_name", sa.Text(), nullable=True),
        sa.Column("instance_id", sa.Text(), nullable=True),
        sa.Column("gpu_uuid", sa.Text(), nullable=True),
        sa.Column("audit_every", sa.Integer(), nullable=False),
        sa.Column("passes_wanted", sa.Integer(), nullable=False),
        sa.Column("asked_at", Instant(), nullable=False),
        sa.Column("ends_at", Instant(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("taken_by", sa.Text(), nullable=True),
        sa.Column("taken_at", Instant(), nullable=True),
        sa.Column("passes", sa.Integer(), nullable=False),
        sa.Column("settled_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_targeted_audits")),
    )
    with op.batch_alter_table("targeted_audits", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_targeted_audits_proposal_id"), ["proposal_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_targeted_audits_state_cluster"), ["state", "cluster"], unique=False
        )

    op.create_table(
        "vetoes",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("node_name", sa.Text(), nullable=False),
        sa.Column("instance_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("until", Instant(), nullable=True),
        sa.Column("lifted_by", sa.Text(), nullable=True),
        sa.Column("lifted_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vetoes")),
    )
    with op.batch_alter_table("vetoes", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_vetoes_cluster_node_name"), ["cluster", "node_name"], unique=False
        )

    with op.batch_alter_table("proposals", schema=None) as batch_op:
        batch_op.add_column(sa.Column("parameters", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("policy", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("lineage", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("execute_by", Instant(), nullable=True))
        batch_op.add_column(sa.Column("batch_id", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("next_look_at", Instant(), nullable=True))
        batch_op.add_column(sa.Column("looks", sa.Integer(), server_default="0", nullable=False))
        batch_op.create_index(batch_op.f("ix_proposals_batch_id"), ["batch_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_proposals_status_next_look_at"), ["status", "next_look_at"], unique=False
        )

    # Earlier versions kept with a proposal that its action could not be carried out at all.
    op.execute("UPDATE proposals SET blocked = NULL WHERE blocked = 'not connected yet'")
    op.execute(
        "UPDATE proposals SET blocked = substr(blocked, 20) "
        "WHERE blocked LIKE 'not connected yet; %'"
    )


def downgrade() -> None:
    """Change them back."""
    with op.batch_alter_table("proposals", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_proposals_status_next_look_at"))
        batch_op.drop_index(batch_op.f("ix_proposals_batch_id"))
        batch_op.drop_column("looks")
        batch_op.drop_column("next_look_at")
        batch_op.drop_column("batch_id")
        batch_op.drop_column("execute_by")
        batch_op.drop_column("lineage")
        batch_op.drop_column("policy")
        batch_op.drop_column("parameters")

    with op.batch_alter_table("vetoes", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_vetoes_cluster_node_name"))

    op.drop_table("vetoes")
    with op.batch_alter_table("targeted_audits", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_targeted_audits_state_cluster"))
        batch_op.drop_index(batch_op.f("ix_targeted_audits_proposal_id"))

    op.drop_table("targeted_audits")
    with op.batch_alter_table("machine_links", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_machine_links_old_instance_id"))
        batch_op.drop_index(batch_op.f("ix_machine_links_new_instance_id"))

    op.drop_table("machine_links")
    with op.batch_alter_table("hardware_tests", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_hardware_tests_node_id_at"))
        batch_op.drop_index(batch_op.f("ix_hardware_tests_instance_id_at"))
        batch_op.drop_index(batch_op.f("ix_hardware_tests_gpu_id_at"))

    op.drop_table("hardware_tests")
    op.drop_table("approval_batches")
