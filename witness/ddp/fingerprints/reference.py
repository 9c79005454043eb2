"""What are the sums, in plain torch operations for any device?

The meaning of a fingerprint is fixed here; the compiled paths must give the same integers. With
b_i the elements as integers, i counted from `start`, and everything modulo 2^64:

    sum 1 = sum of b_i
    sum 2 = sum of (i + 1) * b_i
    sum 3 = sum of u_k * w_k    (version 2 only)

where u_k are the signed 32-bit words of the same bytes and w_k signed 32-bit weights from word
index and key (mixing.py).

A row is taken as a matrix: with its row sums and column sums the weighted sum needs no vector of
positions and no product per element.
"""

from __future__ import annotations

import torch
from torch import Tensor

from witness.ddp.fingerprints import layout, mixing

COLUMNS = 512
# Below this the number of operations counts, not what they read.
SMALL = 1 << 16
# A CPU's sum(dtype=int64) converts first: so many elements at a time. A GPU converts in flight.
CONVERTED = 1 << 17
# Weights are made for so many words at a time.
WEIGHTS = 1 << 17
WEIGHTS_ELSEWHERE = 1 << 22
BLOCK_OF_INDEX = 1 << 32


def sums(tensor: Tensor, version: int = 1, key: int = 0, start: int = 0) -> Tensor:
    """Give the two (version 1) or three (version 2) sums of a tensor, int64, on its device.

    `start` is the index of the tensor's first element, for a part of something larger; in version 2
    it must lie at a whole 32-bit word.
    """
    integers = layout.as_integers(tensor)
    total = torch.zeros(version + 1, dtype=torch.int64, device=integers.device)
    if integers.numel() == 0:
        return total
    for row, first in layout.blocks(integers):
        total[:2] += _plain_and_weighted(row, start + first)
        if version == 2:
            byte = (start + first) * row.element_size()
            total[2] += _keyed(layout.words(row), byte // layout.WORD_BYTES, key)
    return total


def _plain_and_weighted(row: Tensor, start: int) -> Tensor:
    if row.numel() <= SMALL:
        wide = row.to(torch.int64)
        places = torch.arange(row.numel(), dtype=torch.int64, device=row.device)
        return torch.stack((wide.sum(), (wide * (places + mixing.signed(start + 1, 64))).sum()))
    whole = row.numel() // COLUMNS * COLUMNS
    matrix = row[:whole].view(-1, COLUMNS)
    by_row, by_column = _margins(matrix, convert=row.device.type == "cpu")
    rest = row[whole:].to(torch.int64)
    places = torch.arange(1, max(COLUMNS, by_row.numel()) + 1, dtype=torch.int64, device=row.device)
    in_row = (places[:COLUMNS] * by_column).sum() + (places[: rest.numel()] * rest).sum()
    before = ((places[: by_row.numel()] - 1) * by_row).sum() * COLUMNS + rest.sum() * whole
    plain = by_row.sum() + rest.sum()
    return torch.stack((plain, in_row + before + plain * mixing.signed(start, 64)))


def _margins(matrix: Tensor, convert: bool) -> tuple[Tensor, Tensor]:
    """Give the sums of the rows and of the columns, int64; `convert` some rows at a time."""
    if not convert:
        return matrix.sum(1, dtype=torch.int64), matrix.sum(0, dtype=torch.int64)
    by_row = torch.empty(matrix.shape[0], dtype=torch.int64)
    by_column = torch.zeros(COLUMNS, dtype=torch.int64)
    step = min(CONVERTED // COLUMNS, matrix.shape[0])
    space = torch.empty(step, COLUMNS, dtype=torch.int64)
    for first in range(0, matrix.shape[0], max(step, 1)):
        part = matrix[first : first + step]
        wide = space[: part.shape[0]].copy_(part)
        by_row[first : first + step] = wide.sum(1)
        by_column += wide.sum(0)
    return by_row, by_column


def _keyed(words: Tensor, first: int, key: int) -> Tensor:
    total = torch.zeros((), dtype=torch.int64, device=words.device)
    most = WEIGHTS if words.device.type == "cpu" else WEIGHTS_ELSEWHERE
    done = 0
    while done < words.numel():
        index = first + done
        count = min(most, words.numel() - done, BLOCK_OF_INDEX - index % BLOCK_OF_INDEX)
        weights = mixing.weights(index, count, key, words.device)
        total += (words[done : done + count].to(torch.int64) * weights).sum()
        done += count
    return total
