"""The cells of each run, by the name that `--plan` takes."""

from plans import adapters, check, matrix, single, soak

PLANS = {"check": check.lanes, "matrix": matrix.lanes, "adapters": adapters.lanes, "soak": soak.lanes,
         "requester": single.requester_lanes, "responder": single.responder_lanes, "life": single.life_lanes,
         "memory": single.memory_lanes, "storm": single.storm_lanes}
