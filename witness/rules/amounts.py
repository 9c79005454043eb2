"""How do the rules write a measured number, and a rise whose unit changed between versions?"""

from witness.rules.dcgm_fields import Field


def number(value: float) -> str:
    """Write whole numbers in full and others with six digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.6g}"


def amount(field: Field, value: float) -> str:
    """Write an amount with its unit; time held down in both units it may have."""
    if field.unit == "ns":
        return f"{number(value)} ({_seconds(value / 1e9)}, or {_seconds(value / 1e6)} by old units)"
    return f"{number(value)} {field.unit}" if field.unit else number(value)


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:,.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def percent(chance: float) -> str:
    """Write a chance in percent with as many digits as it deserves."""
    if chance >= 0.1:
        return f"{100 * chance:.0f} %"
    return f"{100 * chance:.2g} %" if chance >= 1e-6 else "less than 0.0001 %"
