"""Program that learns the text and then writes, without a host in between.

Training and writing are one image, since the writer only needs the trained parameters, which remain in HBM.
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
    """Program that trains the network and then generates text with the network.

    `text` is the number of characters of the training text, `batch` the windows per training step. `order` and `tile`
    are as in `Program`. `windows` are the training data, `page` is prompt and output. Raises ValueError if the text is
    not longer than a window, or SBUF has no room.
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
        """Return the image of the program with its data.

        Text and prompt are numbers of characters. `starts` are the positions in the text of each window's first
        character, for all steps; `written` is the number of characters to write after the prompt. `encode` converts
        float values to codes of a format. Raises ValueError if a window exceeds the text, or prompt and written
        characters exceed the context.
        """
        last = len(text) - self.sizes.context - 1
        if not 0 <= np.min(starts) <= np.max(starts) <= last:
            raise ValueError(f"starts must be from 0 to {last:,}, not {np.min(starts):,} to {np.max(starts):,}")
        # The last written character is never read.
        most, read = self.sizes.context + 1, len(prompt) + written - 1
        if not len(prompt) or not written or read >= most:
            raise ValueError(
                f"prompt and written characters must be at least 1 each and at most {most} together, "
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
