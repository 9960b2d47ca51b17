"""Several queries on one cluster (CAPSys 6.2.2): seen as one graph by CAPS, one after the other by the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sluice.lab.reproduce.capsys_jobs import StudiedQuery, all_together, tenant_name
from sluice.lab.reproduce.capsys_runs import Measured, arrivals, measure_by_source, must_place, request
from sluice.lab.simulator import RateCurve
from sluice.model import Cluster, Graph, Placement
from sluice.placement import PlacementRequest, placers


@dataclass(frozen=True)
class Tenants:
    """All queries as one request, with the names that belong to each."""

    queries: tuple[StudiedQuery, ...]
    union: StudiedQuery
    request: PlacementRequest
    curves: Mapping[str, RateCurve]

    @staticmethod
    def of(queries: Sequence[StudiedQuery], cluster: Cluster, rates: Mapping[str, float]) -> Tenants:
        union = all_together(tuple(queries))
        parts = {
            query: request(query, cluster, rates[query.name], query.parallelism(rates[query.name])) for query in queries
        }
        together = PlacementRequest(
            graph=union.graph,
            parallelism={
                tenant_name(query, name): count
                for query, part in parts.items()
                for name, count in part.parallelism.items()
            },
            cluster=cluster,
            loads={
                tenant_name(query, name): load for query, part in parts.items() for name, load in part.loads.items()
            },
        )
        curves = {
            tenant_name(query, source): curve
            for query in queries
            for source, curve in arrivals(query, rates[query.name]).items()
        }
        return Tenants(queries=tuple(queries), union=union, request=together, curves=curves)

    def measure(self, placement: Placement, seed: int) -> list[Measured]:
        """One result per query."""
        sources = [tuple(tenant_name(query, source) for source in query.shares) for query in self.queries]
        return measure_by_source(self.union, self.request.cluster, self.curves, placement, seed, sources)

    def placed_in_turn(self, strategy: str, seed: int) -> Placement:
        """In a random order of submission; what is placed stays."""
        settled = Placement(tasks={worker.name: {} for worker in self.request.cluster.workers})
        for position in np.random.default_rng(seed).permutation(len(self.queries)):
            query = self.queries[position]
            known = [*settled.parallelism, *(tenant_name(query, op.name) for op in query.operators)]
            so_far = PlacementRequest(
                graph=Graph(
                    operators=tuple(op for op in self.request.graph.operators if op.name in known),
                    edges=tuple(edge for edge in self.request.graph.edges if edge.source in known),
                ),
                parallelism={name: self.request.parallelism[name] for name in known},
                cluster=self.request.cluster,
                loads={name: self.request.loads[name] for name in known},
                pinned=settled,
            )
            placed = must_place(placers.create(strategy, {"seed": seed}), so_far)
            assert placed.placement is not None
            settled = placed.placement
        return settled
