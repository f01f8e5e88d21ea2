"""The core in time: its parts, put together and run."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from neuroncore_rtl.golden.timing.banks import Banks
from neuroncore_rtl.golden.timing.controller import Controller, ControlPath
from neuroncore_rtl.golden.timing.dma import DmaEngine
from neuroncore_rtl.golden.timing.elementwise import ElementwiseEngine
from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.fetch import Fetcher
from neuroncore_rtl.golden.timing.memory import MemoryTiming, TimedHbm
from neuroncore_rtl.golden.timing.prediction import Prediction, Timed
from neuroncore_rtl.golden.timing.queue import Queue
from neuroncore_rtl.golden.timing.semaphores import Semaphores
from neuroncore_rtl.golden.timing.tensor import TensorEngine
from neuroncore_rtl.golden.timing.waiting import Waiting
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Engine, Record, engine_of_queue, queue_count, queue_name
from neuroncore_rtl.spec.isa.engine import ENGINE_QUEUES, records_ahead

__all__ = ["Started", "predict"]


_USUAL = MemoryTiming()


class Block(Protocol):
    """Records of a queue, as `kernels.control.stock.Block` has them."""

    queue: int
    address: int
    count: int
    section: int
    semaphores: range


class Started(Protocol):
    """What is run: an image, as `kernels.program.image.Image` is one."""

    config: Config
    data: bytes
    blocks: Sequence[Block]
    records: Sequence[Sequence[Record]]
    control: Mapping[str, int]
    runs: Sequence[int] | None
    flow: Sequence[object] | None


def predict(
    image: Started,
    memory: MemoryTiming = _USUAL,
    *,
    sections: Sequence[int] | None = None,
    path: ControlPath | None = None,
) -> Prediction:
    """Return how an image runs on the core that it is for.

    Arguments:
        image: with the stock control program, or one that starts sections likewise. One with a flow needs `sections`
            and the path of its operations (:func:`golden.timing.flow_path`): what the run decides is golden's affair.
        memory: how HBM behaves.
        sections: those that the control program runs, in order, each as often as it is named; None: the image's runs.
        path: of a control program; None: the stock program's.

    Raises:
        ValueError: if the core is one of an instance, some records wait for what nobody updates, or an image with a
            flow comes without its sections and its path.
    """
    config = image.config
    if config.cores > 1:
        raise ValueError(f"cores must be 1, as collectives have no timing model, not {config.cores}")
    if image.flow is not None and (sections is None or path is None):
        raise ValueError("sections and path must be those of a run, as the image has registers or loops")
    agenda = Agenda()
    hbm = TimedHbm(config, memory, agenda)
    fetcher, semaphores = Fetcher(config, agenda, hbm), Semaphores(agenda)
    banks = Banks(config)
    trace: list[Timed] = []
    engines, queues = [], []
    for number in range(queue_count(config)):
        engine = engine_of_queue(number, config)
        if engine == Engine.TENSOR:
            model = TensorEngine(config, agenda, banks)
        elif engine == Engine.DMA:
            dma = number - len(ENGINE_QUEUES)
            model = DmaEngine(config, agenda, dma, hbm, banks)
        else:
            model = ElementwiseEngine(config, agenda, banks, engine)
        engines.append(model)
        taker = Waiting(agenda, model) if config.port_latency else model
        queues.append(Queue(number, records_ahead(engine, config), agenda, fetcher, semaphores, taker, trace))
    size = int.from_bytes(image.data[4:8], "little")
    sections = image.runs if sections is None else sections
    controller = Controller(config, agenda, hbm, semaphores, queues, image, size // 4, sections, path)
    controller.start()
    agenda.run()
    if controller.ended is None:
        stuck = next(queue.number for queue in queues if queue.left)
        raise ValueError(f"records must not wait for ever, but one of queue {queue_name(stuck, config)} does")
    return Prediction(
        cycles=controller.ended,
        records=trace,
        busy={queue_name(number, config): model.busy for number, model in enumerate(engines)},
        waits={queue_name(queue.number, config): queue.waits | engines[queue.number].waited for queue in queues},
    )
