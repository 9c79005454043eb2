"""What does the README say about the settings, and what should it say?

`python -m tests.tooling.settings_table` writes it.
"""

from __future__ import annotations

from pathlib import Path

from app.config import Settings

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- settings:begin -->", "<!-- settings:end -->"


def _shown(value: object) -> str:
    if value in ("", {}):
        return ""
    text = "true" if value is True else "false" if value is False else f"{value}"
    return f"`{text.removesuffix('.0')}`"


def table() -> str:
    """Draw the table from the settings class."""
    prefix = Settings.model_config.get("env_prefix", "")
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True, validated_data={})
        meaning = (field.description or "").replace("|", "\\|")
        rows.append(f"| `{prefix}{name.upper()}` | {_shown(default)} | {meaning} |")
    return "\n".join(rows)


def with_table(text: str) -> str:
    """Put the table between its marks."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
