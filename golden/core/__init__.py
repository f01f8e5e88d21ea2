"""Core: queues, semaphores and engines, and the controller that starts the queues."""

from neuroncore_rtl.golden.core.core import Core, CoreOutcome
from neuroncore_rtl.golden.core.errors import CoreError
from neuroncore_rtl.golden.core.instance import run_instance
from neuroncore_rtl.golden.core.machine import Machine
from neuroncore_rtl.golden.core.network import Network

__all__ = ["Core", "CoreError", "CoreOutcome", "Machine", "Network", "run_instance"]
