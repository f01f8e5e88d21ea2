"""The timing model: in which cycle every record of an image is fetched, issued and retired, without simulating a cycle.

It is event-driven over instructions. Values play no part: what a program computes is golden's affair.
"""

from neuroncore_rtl.golden.timing.controller import ControlPath
from neuroncore_rtl.golden.timing.memory import MemoryTiming
from neuroncore_rtl.golden.timing.model import predict
from neuroncore_rtl.golden.timing.prediction import Prediction, Timed

__all__ = ["ControlPath", "MemoryTiming", "Prediction", "Timed", "predict"]
