"""What are the sums, in plain torch operations for any device?

The meaning of a fingerprint is fixed here; the compiled paths must give the same integers. With
b_i the elements as integers, i counted from `start`, and everything modulo 2^64:

    sum 1 = sum of b_i
    sum 2 = sum of (i + 1) * b_i
    sum 3 = sum of u_k * w_k    (version 2 only)

where u_k are the signed 32-bit words of the same bytes and w_k signed 32-bit weights from word
index and key (mixing.py).

A row is taken as a matrix of R x C: with its row sums and column sums the weighted sum needs no
vector of positions and no product per element.
"""

from __future__ import annotations

import torch
from torch import Tensor

from witness.ddp.fingerprints import layout, mixing

COLUMNS = 256
# The CPU's sum(dtype=int64) converts first: pieces that fit its cache. A GPU converts in flight.
PIECE = 1 << 15
PIECE_ELSEWHERE = 1 << 26
# Weights are made piece by piece: two int64 of this many elements exist at a time.
WEIGHTS = 1 << 15
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
    on_cpu = row.device.type == "cpu"
    place = torch.arange(1, COLUMNS + 1, dtype=torch.int64, device=row.device)
    total = torch.zeros(2, dtype=torch.int64, device=row.device)
    for part in row.split(PIECE if on_cpu else PIECE_ELSEWHERE):
        piece = part.to(torch.int64) if on_cpu else part
        whole = piece.numel() // COLUMNS * COLUMNS
        matrix, rest = piece[:whole].view(-1, COLUMNS), piece[whole:]
        by_row, by_column = matrix.sum(1, dtype=torch.int64), matrix.sum(0, dtype=torch.int64)
        plain = by_row.sum() + rest.sum(dtype=torch.int64)
        nth = torch.arange(by_row.numel(), dtype=torch.int64, device=row.device)
        inside = (nth * by_row).sum() * COLUMNS + (place * by_column).sum()
        at_end = ((place[: rest.numel()] + whole) * rest).sum()
        total += torch.stack((plain, inside + at_end + plain * mixing.signed(start, 64)))
        start += piece.numel()
    return total


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
