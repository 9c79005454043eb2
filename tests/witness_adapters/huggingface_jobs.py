"""A small real Trainer on one rank of a fleet, with or without a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from witness.ddp.adapters.framework import Stopped, TaggedCheckpoints
from witness.ddp.adapters.huggingface import SilentWitness
from witness.ddp.adapters.huggingface_data import SameDataset
from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.schedule import Schedule

SCHEDULE = {"audit_every": 4, "check_every": 2, "peer_offset": 1}


class Texts(Dataset[dict[str, torch.Tensor]]):
    """Seven labels of each example count, the rest do not: the loss is divided by the count."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        ids = torch.randint(64, (12,), generator=torch.Generator().manual_seed(place))
        labels = ids.clone()
        labels[7 + place % 4 :] = -100
        return {"input_ids": ids, "labels": labels}


class Bits(TrainerCallback):
    """Keeps the bits of the weights as they are at the beginning of each step."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        self.kept: list[torch.Tensor] = []

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.kept = [param.detach().clone() for param in self.model.parameters()]

    def unchanged(self) -> bool:
        now = self.model.parameters()
        return all(torch.equal(a, b) for a, b in zip(self.kept, now, strict=True))


def jobs(folder: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Train once for each case, one after another in the same process group."""
    return [_train(Path(folder), **case) for case in cases]


def _train(
    top: Path,
    folder: str,
    fault: dict[str, Any] | None = None,
    schedule: dict[str, Any] | None = None,
    arguments: dict[str, Any] | None = None,
    resume: str | None = None,
    rebuilds: bool = True,
) -> dict[str, Any]:
    """Train a few steps; say how it ended, what the guard knows and whether weights moved."""
    torch.manual_seed(1)
    config = GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=16,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    given: dict[str, Any] = {
        "output_dir": str(top / folder),
        "max_steps": 8,
        "per_device_train_batch_size": 2,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "seed": 3,
        "max_grad_norm": 0.5,
        "ddp_find_unused_parameters": False,
        **(arguments or {}),
    }
    model = GPT2LMHeadModel(config)
    trainer = Trainer(model, TrainingArguments(**given), train_dataset=Texts(39))
    bits = Bits(model)
    trainer.add_callback(bits)
    if fault is not None:
        _arm(trainer, fault)
    witness = SilentWitness(
        trainer,
        Schedule(**{**SCHEDULE, **(schedule or {})}),
        SameDataset(trainer) if rebuilds else None,
        after_alarm=AfterAlarm(replays=2),
    )
    said: dict[str, Any] = {"alarm": None, "code": 0}
    try:
        trainer.train(resume_from_checkpoint=None if resume is None else str(top / resume))
    except Stopped as stopped:
        said = {"alarm": stopped.alarm, "code": stopped.code}
    assert witness.guard is not None
    said["step"] = trainer.state.global_step
    said["tags"] = witness.guard.tags()
    safe = TaggedCheckpoints(top / folder).latest_safe()
    said["safe"] = None if safe is None else safe.name
    said["unchanged"] = bits.unchanged()
    said["saved"] = sorted(path.name for path in (top / folder).glob("checkpoint-*"))
    return said


def _arm(trainer: Any, fault: dict[str, Any]) -> None:
    """Let one rank's GPU compute wrong, in training and in replays alike, in a range of steps."""
    if dist.get_rank() != fault["rank"]:
        return
    layer = trainer.model.transformer.h[1].mlp.c_proj
    first, last = fault["steps"]

    def wrong(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        if not first <= trainer.state.global_step + 1 <= last:
            return output
        output = output.clone()
        output.view(-1)[5] = output.view(-1)[5] * fault["factor"]
        return output

    if fault.get("drift"):
        trainer.add_callback(_Drift(layer.weight, first))
    else:
        layer.register_forward_hook(wrong)


class _Drift(TrainerCallback):
    def __init__(self, weight: torch.Tensor, step: int) -> None:
        self.weight, self.step = weight, step

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step + 1 == self.step:
            self.weight.detach().view(torch.int32).view(-1)[3] ^= 1 << 22
