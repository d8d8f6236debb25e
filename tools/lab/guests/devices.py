"""The RDMA devices of the lab: two software ones, and what they can play."""

from dataclasses import dataclass

import progress


@dataclass(frozen=True)
class Device:
    """What a device is made of."""

    # The kernel's name of its kind, and the name of its driver.
    kind: str
    # Which adapter it plays (tests/kernel/adapter/), if any.
    plays: str = ""

    @property
    def command(self) -> str:
        """Makes it in a guest."""
        return f"/lab/rdma-device {self.kind} {self.plays or 'itself'}"


# What tests run on everywhere.
KINDS = ("rxe", "siw")
# The drivers whose adapters are played by a device for RoCE, and by one for iWARP.
ROCE = ("mlx5", "mlx4", "bnxt_re", "irdma", "hns", "qedr")
IWARP = ("irdma", "x722", "cxgb4", "erdma")
ALL = {"rxe": Device("rxe"), "siw": Device("siw"), "dma": Device("rxe", "dma"), "dma-iwarp": Device("siw", "dma"),
       "bounce": Device("rxe", "bounce"), "short": Device("rxe", "short"), "boastful": Device("rxe", "boastful"),
       "worst": Device("rxe", "worst"), "worst-iwarp": Device("siw", "worst"),
       **{name: Device("rxe", name) for name in ROCE},
       **{f"{name}-iwarp": Device("siw", name) for name in IWARP}}
NAMES = tuple(ALL)


def named(name: str) -> Device:
    """The device of that name."""
    if name not in ALL:
        raise progress.Failure(f"no device is called {name}", f"use one of: {', '.join(ALL)}")
    return ALL[name]
