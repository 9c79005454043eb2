"""A small real Lightning Trainer on one rank of a fleet, with or without a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins import MixedPrecision
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from witness.ddp.adapters.framework import Stopped, TaggedCheckpoints
from witness.ddp.adapters.lightning import SilentWitness
from witness.ddp.adapters.lightning_data import SameDataset
from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.schedule import Schedule

SCHEDULE = {"audit_every": 4, "check_every": 2, "peer_offset": 1}
EXAMPLES, BATCH = 60, 4


class Points(Dataset[Tensor]):
    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, place: int) -> Tensor:
        return torch.randn(8, generator=torch.Generator().manual_seed(place))


class Small(LightningModule):
    """With dropout, a buffer that each forward writes, and something that is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 8)
        )
        self.logged: list[int] = []

    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
        loss = (self.layers(batch) - batch).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


class Bits(Callback):
    """Keeps the bits of the weights as they are when a batch begins."""

    def __init__(self) -> None:
        self.kept: list[Tensor] = []

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        self.kept = [param.detach().clone() for param in module.parameters()]

    def unchanged(self, module: nn.Module) -> bool:
        now = module.parameters()
        return all(torch.equal(a, b) for a, b in zip(self.kept, now, strict=True))


class Fault(Callback):
    """One rank's GPU computes wrong, in training and replays alike, or its weights drift."""

    def __init__(self, steps: tuple[int, int], factor: float, drift: bool = False) -> None:
        self.steps, self.factor, self.drift = steps, factor, drift

    def on_train_start(self, trainer: Any, module: Any) -> None:
        def wrong(layer: Any, inputs: Any, output: Tensor) -> Tensor:
            if not self.steps[0] <= trainer.global_step + 1 <= self.steps[1]:
                return output
            output = output.clone()
            output.view(-1)[5] = output.view(-1)[5] * self.factor
            return output

        if not self.drift:
            module.layers[0].register_forward_hook(wrong)

    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.drift and trainer.global_step == self.steps[0]:
            module.layers[0].weight.detach().view(torch.int32).view(-1)[3] ^= 1 << 22


def jobs(folder: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Train once for each case, one after another in the same process group."""
    return [_train(Path(folder), **case) for case in cases]


def _train(
    top: Path,
    *,
    folder: str,
    fault: dict[str, Any] | None = None,
    schedule: dict[str, Any] | None = None,
    trainer: dict[str, Any] | None = None,
    saves_every: int = 0,
    resume: str | None = None,
    rebuilds: bool = True,
    scale: float | None = None,
) -> dict[str, Any]:
    """Train a few steps; say how it ended, what the guard knows and whether weights moved."""
    torch.manual_seed(1)
    module, bits = Small(), Bits()
    loader = DataLoader(Points(), batch_size=BATCH, shuffle=True)
    witness = SilentWitness(
        Schedule(**{**SCHEDULE, **(schedule or {})}),
        SameDataset() if rebuilds else None,
        after_alarm=AfterAlarm(replays=2),
    )
    callbacks: list[Callback] = [bits]
    if fault is not None and dist.get_rank() == fault["rank"]:
        callbacks.append(Fault(fault["steps"], fault["factor"], fault.get("drift", False)))
    callbacks.append(witness)
    if saves_every:
        callbacks.append(
            ModelCheckpoint(
                top / folder,
                "step-{step}",
                every_n_train_steps=saves_every,
                save_top_k=-1,
                save_on_exception=True,
                auto_insert_metric_name=False,
            )
        )
    given: dict[str, Any] = {
        "max_steps": 8,
        "accelerator": "cpu",
        "devices": dist.get_world_size(),
        "strategy": DDPStrategy(cluster_environment=TorchElasticEnvironment()),
        "callbacks": callbacks,
        "default_root_dir": top / folder,
        "logger": False,
        "enable_checkpointing": bool(saves_every),
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "gradient_clip_val": 0.5,
        **(trainer or {}),
    }
    scaler = torch.amp.GradScaler("cpu", init_scale=scale or 1.0, enabled=scale is not None)
    if scale is not None:
        given["plugins"] = [MixedPrecision("16-mixed", "cpu", scaler)]
    said: dict[str, Any] = {"alarm": None, "code": 0}
    running = Trainer(**given)
    try:
        running.fit(module, loader, ckpt_path=None if resume is None else top / resume)
    except Stopped as stopped:
        said = {"alarm": stopped.alarm, "code": stopped.code}
    assert witness.guard is not None
    said["step"] = running.global_step
    said["tags"] = witness.guard.tags()
    safe = TaggedCheckpoints(top / folder).latest_safe()
    said["safe"] = None if safe is None else safe.name
    said["unchanged"] = bits.unchanged(module)
    said["saved"] = sorted(path.name for path in (top / folder).glob("*.ckpt"))
    said["scale"] = scaler.get_scale()
    said["logged"] = sorted(running.callback_metrics)
    return said
