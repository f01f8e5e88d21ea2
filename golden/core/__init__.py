"""The core: queues and semaphores around the engines, and the controller whose program starts them."""

from golden.core.core import Core, CoreOutcome
from golden.core.errors import CoreError
from golden.core.instance import run_instance
from golden.core.machine import Machine
from golden.core.network import Network

__all__ = ["Core", "CoreError", "CoreOutcome", "Machine", "Network", "run_instance"]
