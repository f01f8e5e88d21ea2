"""Timing model of a core: assembles its parts and runs them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from neuroncore_rtl.golden.timing.banks import Banks
from neuroncore_rtl.golden.timing.controller import Controller, ControlPath
from neuroncore_rtl.golden.timing.copy_start import CopyStart
from neuroncore_rtl.golden.timing.dma import DmaEngine
from neuroncore_rtl.golden.timing.elementwise import ElementwiseEngine
from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.fetch import Fetcher
from neuroncore_rtl.golden.timing.memory import MemoryTiming, TimedHbm
from neuroncore_rtl.golden.timing.port_register import PortRegister
from neuroncore_rtl.golden.timing.prediction import Prediction, Timed
from neuroncore_rtl.golden.timing.queue import Queue
from neuroncore_rtl.golden.timing.semaphores import Semaphores
from neuroncore_rtl.golden.timing.tensor import TensorEngine
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Engine, Record, engine_of_queue, queue_count, queue_name
from neuroncore_rtl.spec.isa.engine import ENGINE_QUEUES, records_ahead

__all__ = ["Started", "predict"]


_USUAL = MemoryTiming()


class Block(Protocol):
    """Interface of `kernels.control.stock.Block`: consecutive records of a queue that one doorbell starts."""

    @property
    def queue(self) -> int: ...

    @property
    def address(self) -> int: ...

    @property
    def count(self) -> int: ...

    @property
    def section(self) -> int: ...

    @property
    def semaphores(self) -> range: ...


class Started(Protocol):
    """Interface of `kernels.program.image.Image`: an image that can be run."""

    @property
    def config(self) -> Config: ...

    @property
    def data(self) -> bytes: ...

    @property
    def blocks(self) -> Sequence[Block]: ...

    @property
    def records(self) -> Sequence[Sequence[Record]]: ...

    @property
    def control(self) -> Mapping[str, int]: ...

    @property
    def runs(self) -> Sequence[int] | None: ...

    @property
    def flow(self) -> Sequence[object] | None: ...


def predict(
    image: Started,
    memory: MemoryTiming = _USUAL,
    *,
    sections: Sequence[int] | None = None,
    path: ControlPath | None = None,
    trace: list[Timed] | None = None,
) -> Prediction:
    """Predict the run of an image on its core.

    An image with a flow needs `sections` and `path` (`golden.timing.flow_path`), as its branches depend on values.

    The image has the stock control program, or one that starts sections in the same way. `sections` are in the order in
    which they run, with repetitions, by default the order in the image. `path` is the timing of the control program, by
    default the stock program's. `trace`, an empty list, receives every issued record. Raises ValueError if the core is
    part of an instance, a record waits forever, or a flow lacks `sections` or `path`.
    """
    config = image.config
    if config.cores > 1:
        raise ValueError(f"cores must be 1, as collectives have no timing model, not {config.cores}")
    if image.flow is not None and (sections is None or path is None):
        raise ValueError("sections and path must be given for an image with registers or loops")
    agenda = Agenda()
    hbm = TimedHbm(config, memory, agenda)
    fetcher, semaphores = Fetcher(config, agenda, hbm), Semaphores(agenda)
    banks = Banks(config)
    trace = [] if trace is None else trace
    engines, queues = [], []
    for number in range(queue_count(config)):
        engine = engine_of_queue(number, config)
        if engine == Engine.TENSOR:
            taker = model = TensorEngine(config, agenda, banks)
        elif engine == Engine.DMA:
            dma = number - len(ENGINE_QUEUES)
            taker = model = DmaEngine(config, agenda, dma, hbm, banks)
            if config.dma_start:
                taker = CopyStart(agenda, config.dma_start, model)
        else:
            taker = model = ElementwiseEngine(config, agenda, banks, engine)
        engines.append(model)
        taker = PortRegister(agenda, taker) if config.port_latency else taker
        queues.append(Queue(number, records_ahead(engine, config), agenda, fetcher, semaphores, taker, trace))
    size = int.from_bytes(image.data[4:8], "little")
    sections = image.runs if sections is None else sections
    controller = Controller(config, agenda, hbm, semaphores, queues, image, size // 4, sections, path)
    controller.start()
    agenda.run_all()
    if controller.ended is None:
        stuck = next(queue.number for queue in queues if queue.pending)
        raise ValueError(f"a record of queue {queue_name(stuck, config)} waits for ever")
    return Prediction(
        cycles=controller.ended,
        records=trace,
        busy={queue_name(number, config): model.busy for number, model in enumerate(engines)},
        waits={queue_name(queue.number, config): queue.waits | engines[queue.number].waited for queue in queues},
    )
