"""How do the rules phrase lists of ranks, windows, counts and durations?"""

from collections.abc import Sequence

RANKS_SHOWN = 12
"""A sentence stays readable up to about this many numbers; the rest is counted."""


LONGEST_NAME = 80
"""Posted words longer than this are cut inside sentences."""


def listed(items: Sequence[int] | Sequence[str], shown: int = RANKS_SHOWN) -> str:
    """Join items with commas and a final "and"; past `shown` items say how many more there are."""
    texts = [str(item) for item in items[:shown]]
    if len(items) > shown:
        return f"{', '.join(texts)} and {len(items) - shown:,} more"
    if len(texts) > 1:
        return f"{', '.join(texts[:-1])} and {texts[-1]}"
    return texts[0] if texts else "none"


def ranks(numbers: Sequence[int], shown: int = RANKS_SHOWN) -> str:
    """Say "rank 13" or "ranks 5, 13 and 21"."""
    if not numbers:
        return "no rank"
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {listed(numbers, shown)}"


def window(first: int, last: int) -> str:
    """Write a window of steps as "21–30", or one step as "30"."""
    return f"{first}–{last}" if first != last else f"{first}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Say "1 step" or "3 steps"; `many` is for words whose plural is not made with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def cut(text: str, longest: int = LONGEST_NAME) -> str:
    """Shorten a posted name that would swamp a sentence; the document keeps all of it."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def plain(text: str) -> str:
    """Make foreign text fit for a sentence: half a surrogate pair or a NUL becomes a blank.

    A page could not send the one, nor a database keep the other.
    """
    return "".join(one if one.isprintable() else " " for one in text)


def pair(target: int, replayer: int) -> str:
    """Name one comparison by who replayed whom."""
    return f"rank {replayer} replaying rank {target}"
