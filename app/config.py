"""Which settings are there, in which unit, and what happens without them?

Every setting comes from the environment with the prefix WITNESS_ (or the file named by
WITNESS_ENV_FILE); nothing is read anywhere else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """All settings of the service, read once at start."""

    model_config = SettingsConfigDict(env_prefix="WITNESS_", extra="ignore", frozen=True)

    database_url: str = Field(
        "", description="SQLAlchemy address; empty: SQLite in data_dir/witness.db"
    )
    data_dir: Path = Field(Path("var"), description="folder for the embedded database and secrets")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8080, ge=0, le=65535, description="port to listen on; 0: any free one")
    public_url: str = Field("", description="address people use, for links; empty: host and port")
    admin_token: str = Field(
        "", description="bearer token with every right, for automation; empty: none"
    )
    session_hours: float = Field(12.0, gt=0, description="how long a sign-in lasts, in hours")
    sign_in_link_minutes: float = Field(
        30.0, gt=0, description="how long a sign-in link works, in minutes"
    )
    secure_cookies: bool = Field(False, description="send cookies over HTTPS only")
    clusters: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description='Kubernetes access by cluster name, as JSON: {"alpine": {"kubeconfig": '
        '"/path", "context": "name"}} or {"in_cluster": true}; a cluster not named is a dry run',
    )
    providers: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="who owns a cluster's machines, by cluster name, as JSON: "
        '{"alpine": {"kind": "hyperpod", "cluster": "name", "region": "us-west-2"}}; a cluster '
        "not named is a dry run; see docs/actions.md",
    )
    sources: dict[str, list[dict[str, Any]]] = Field(
        default_factory=dict,
        description="where a cluster's DCGM metrics are, by cluster name, as JSON: "
        '{"alpine": [{"url": "address"}]}; see docs/telemetry.md',
    )
    node_logs: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="where the lines of a cluster's health agents are, by cluster name, as JSON: "
        '{"alpine": {"region": "us-west-2", "log_group": "name"}}; see docs/telemetry.md',
    )
    step_log: dict[str, Any] = Field(
        default_factory=dict,
        description="log group of CloudWatch that gets every audit entry, as JSON: "
        '{"region": "us-west-2", "log_group": "name"}; empty: none; see docs/actions.md',
    )
    telemetry_days: int = Field(
        400,
        ge=0,
        description="samples around alarms are deleted after this unless their case is open or "
        "confirmed, in days; 0: never",
    )
    telemetry_asked_days: int = Field(
        30, ge=0, description="samples that only people asked for, likewise, in days; 0: never"
    )
    recurrence_days: int = Field(
        90, ge=1, description="a second incident within this many days recurs, in days"
    )
    proposal_days: float = Field(7.0, gt=0, description="a proposal expires after this, in days")
    silent_after_minutes: float = Field(
        15.0, gt=0, description="a running job without a pass for this long is silent, in minutes"
    )
    body_limit_mib: float = Field(32.0, gt=0, description="largest accepted document, in MiB")
    queue_limit: int = Field(
        20_000, ge=1, description="documents waiting for the database before 429 is answered"
    )
    cluster_timeout_s: float = Field(
        10.0, gt=0, description="longest wait for one answer of a cluster, in seconds"
    )
    four_eyes: bool = Field(
        True, description="what destroys needs another person to approve than asked for it"
    )
    deep_check_recall: float = Field(
        0.25,
        ge=0,
        lt=1,
        description="share of defective GPUs that a deep health check finds; assumed, the lowest "
        "that was published: a passed one weighs this much in the score",
    )
    deep_check_recall_at_best: float = Field(
        0.70, ge=0, lt=1, description="the same at the best that was published; shown beside it"
    )
    targeted_audit_every: int = Field(
        10, ge=1, description="steps between two audits while a machine is audited closely"
    )
    targeted_audit_passes: int = Field(
        20, ge=1, description="audits that have to pass in a targeted audit"
    )
    targeted_audit_days: float = Field(
        7.0, gt=0, le=14, description="a targeted audit that nobody took ends after this, in days"
    )
    probation_days: float = Field(
        7.0, gt=0, description="a released machine is audited closely for this long, in days"
    )
    watch_days: int = Field(
        90, ge=1, description="a released GPU is watched by its UUID for this long, in days"
    )

    def resolved_database_url(self) -> str:
        """Give the database address, that of the embedded database when none is set."""
        return self.database_url or f"sqlite:///{self.data_dir / 'witness.db'}"


def load_settings(**overrides: Any) -> Settings:
    """Read the settings from the environment; keyword arguments win."""
    env_file = os.environ.get("WITNESS_ENV_FILE")
    return Settings(_env_file=env_file, **overrides)
