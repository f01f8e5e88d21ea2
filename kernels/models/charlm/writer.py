"""Writing: a section that runs once per character. The position is in SBUF, keys and values are in HBM.

The next character is taken from the prompt as long as it has one, and afterwards from the network.
"""

from typing import NamedTuple

from neuroncore_rtl.kernels.library.linear import linear
from neuroncore_rtl.kernels.library.transpose import identity, transpose
from neuroncore_rtl.kernels.models.charlm.network import Sizes, dense_of, layer_of
from neuroncore_rtl.kernels.models.transformer.decoder import Cache, decoder, owners
from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_gather, dma_scatter
from neuroncore_rtl.kernels.program.instructions import (
    find_index8,
    max8,
    memset,
    tensor_copy,
    tensor_copy_predicated,
    tensor_scalar,
    tensor_tensor,
)
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.training.embedding import embedding
from neuroncore_rtl.kernels.training.masters import Masters
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.spec.isa.elementwise import SEARCH_ELEMENTS, VALUES8

__all__ = ["NONE", "CharlmWriter", "Page"]

NONE = -1
"""Padding of a prompt."""


class Page(NamedTuple):
    """Prompt and generated text in HBM, indexed by position.

    `prompt` is padded with `NONE`, INT32 [context, 1]. `scores` are those of each possible next character, FP32
    [context, characters]. `written` is the character with the highest score, the lowest of equal ones, INT32 [context,
    1].
    """

    prompt: HbmTensor
    scores: HbmTensor
    written: HbmTensor


class CharlmWriter:
    """Two sections of a program: the setup, appended at construction, and a character.

    Raises ValueError if the vector engine cannot search this number of distinct characters.
    """

    def __init__(self, program: Program, masters: Masters, sizes: Sizes, page: Page):
        low, high = SEARCH_ELEMENTS
        if not low <= sizes.characters <= high:
            raise ValueError(f"characters must be from {low} to {high} to be searched, not {sizes.characters}")
        self._program, self._masters, self._page = program, masters, page
        space = program.space
        self._caches = [
            Cache(
                space.hbm(f"keys_t {layer}", BF16, (sizes.features, sizes.context)),
                space.hbm(f"values {layer}", BF16, (sizes.context, sizes.features)),
            )
            for layer in range(sizes.layers)
        ]
        self._owners = owners(program, sizes.features, sizes.heads)
        self._identity = identity(program, BF16)
        self._position = space.sbuf("position", INT32, (1,))
        self._last = space.sbuf("last", INT32, (1,), 1)
        for counter in (self._position, self._last):
            program.append(memset(counter, 0))

    def append_character(self) -> None:
        """Append the section that reads the character at the current position and generates the next character."""
        program, page, copy = self._program, self._page, self._masters.copy
        space, position, last = program.space, self._position, self._last
        given, is_given = (space.sbuf(name, INT32, (1,), 1) for name in ("given", "is given"))
        program.append(dma_gather(given, page.prompt, position[:1]))
        program.append(tensor_scalar(is_given, given, NONE, AluOp.IS_GT))
        program.append(tensor_copy_predicated(last, is_given, given))

        x = embedding(program, copy("embedding"), Rows((last,)), "x")
        place = embedding(program, copy("position"), Rows((position[:1],)), "place")
        program.append(tensor_tensor(x.tiles[0], x.tiles[0], place.tiles[0], AluOp.ADD))
        for layer, cache in enumerate(self._caches):
            x = decoder(program, x, layer_of(copy, layer), self._owners, cache, position)
        x_t = transpose(program, x, self._identity)
        scores = linear(program, x_t, *dense_of(copy, "output"), name="scores", fmt=FP32).tiles[0]

        best, where = space.sbuf("best", FP32, (VALUES8,), 1), space.sbuf("where", INT32, (VALUES8,), 1)
        program.append(max8(best, scores))
        program.append(find_index8(where, scores, best))
        program.append(tensor_copy(last, where[:, :1]))
        for target, source in ((page.scores, scores), (page.written, last)):
            program.append(dma_scatter(target, source, position[:1]), next(program.stores))
        program.append(tensor_scalar(position, position, 1, AluOp.ADD))
