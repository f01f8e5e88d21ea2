"""The program of it all: an image of it learns the text and then writes, and no host takes part in between.

Both are one image because what is written depends on nothing but what was learned: the parameters stay in HBM, where
the training has left them.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from neuroncore_rtl.kernels.models.charlm.network import Sizes
from neuroncore_rtl.kernels.models.charlm.trainer import CharlmTrainer, Windows
from neuroncore_rtl.kernels.models.charlm.writer import NONE, CharlmWriter, Page
from neuroncore_rtl.kernels.program import Image, Program, build_image
from neuroncore_rtl.kernels.training.adamw import AdamW
from neuroncore_rtl.kernels.training.masters import Masters
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32, INT32, Format

__all__ = ["STEP", "WRITE", "LanguageModel"]

SETUP, STEP, OPEN, WRITE = range(4)
"""Numbers of sections."""


class LanguageModel:
    """The program.

    Arguments:
        config: the machine's parameters.
        sizes: of the network.
        text: characters of the text.
        batch: windows of a step.
        steps: of the training.
        options: hyperparameters.
        order, tile: see :class:`kernels.program.Program`.

    Attributes:
        program: what computes all of it.
        masters: the parameters.
        windows: what is learned from.
        page: what is written.

    Raises:
        ValueError: if the text has no window, or SBUF has no room.
    """

    def __init__(
        self,
        config: Config,
        sizes: Sizes,
        text: int,
        batch: int,
        steps: int,
        options: AdamW,
        order: str = Program.order,
        tile: int | None = None,
    ):
        if sizes.context >= text:
            raise ValueError(f"context must be below the {text:,} characters of the text, not {sizes.context:,}")
        self.program, self.sizes, self._steps = Program(config, order=order, tile=tile), sizes, steps
        space, count = self.program.space, steps * batch
        self.masters = Masters(space, sizes.shapes(), batch)
        self.windows = Windows(
            space.hbm("text", INT32, (text, 1)),
            space.hbm("starts", INT32, (count, 1)),
            space.hbm("losses", FP32, (count * sizes.context, 1)),
        )
        self.page = Page(
            space.hbm("prompt", INT32, (sizes.context, 1)),
            space.hbm("scores", FP32, (sizes.context, sizes.characters)),
            space.hbm("written", INT32, (sizes.context, 1)),
        )
        trainer = CharlmTrainer(self.program, self.masters, self.windows, sizes, options)
        self.program.start_section()
        trainer.append_step()
        self.program.start_section()
        writer = CharlmWriter(self.program, self.masters, sizes, self.page)
        self.program.start_section()
        writer.append_character()

    def image(
        self,
        text: np.ndarray,
        starts: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        prompt: Sequence[int],
        written: int,
        encode: Callable[[np.ndarray, Format], np.ndarray],
    ) -> Image:
        """Return the image.

        Arguments:
            text: numbers of its characters.
            starts: where the windows of all steps start.
            parameters: that training begins with, by name.
            prompt: numbers of its characters.
            written: characters behind it.
            encode: makes codes of a format from numbers.

        Raises:
            ValueError: if a window does not lie within the text, or prompt and what is written within the context.
        """
        last = len(text) - self.sizes.context - 1
        if not 0 <= np.min(starts) <= np.max(starts) <= last:
            raise ValueError(f"starts must be from 0 to {last:,}, not {np.min(starts):,} to {np.max(starts):,}")
        # The last character is written, but not read.
        most, read = self.sizes.context + 1, len(prompt) + written - 1
        if not len(prompt) or not written or read >= most:
            raise ValueError(
                f"prompt and what is written must have at least a character each, and {most} in all, "
                f"not {len(prompt)} and {written}"
            )
        page = np.full(self.page.prompt.shape, NONE)
        page[: len(prompt), 0] = prompt
        contents = [
            (self.windows.text, text[:, None]),
            (self.windows.starts, starts[:, None]),
            (self.page.prompt, page),
        ]
        for name, value in parameters.items():
            contents += [(self.masters.value(name), value), (self.masters.copy(name), value)]
        codes = [(tensor, encode(values, tensor.format)) for tensor, values in contents]
        runs = [SETUP, *self._steps * [STEP], OPEN, *read * [WRITE]]
        return build_image(self.program, codes, runs=runs)
