"""Holding a thread for a run: its lease is entered where other processes see it, and given back.

What a lease is, and how long it lasts, is said in `state.lease` and `state.lease_table`.
"""

from typing import Any

from loopwright.graph.pump import Pump
from loopwright.state.lease import Lease
from loopwright.state.lease_table import LeaseTable


async def take(lease: Lease, run_id: str, saver: Any) -> None:
    """Keep other processes off the thread, where a saver knows of any. Raises BusyThreadError.

    Whatever becomes of it, the lease has to be given back.
    """
    table = getattr(saver, "leases", None)
    if isinstance(table, LeaseTable):
        await table.take(lease, run_id)


async def give_back(lease: Lease, pump: Pump | None = None) -> None:
    """Give a thread back: not before its last node is over, even if the caller does not wait."""
    if pump is None:
        lease.release()
    else:
        pump.on_end(lease.release)
    if pump is None or pump.is_over:
        await lease.released()
