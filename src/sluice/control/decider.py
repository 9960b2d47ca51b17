"""Ask a policy without trusting it: whatever goes wrong becomes a hold with the problem named."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, Policy, bounded, decides_during_cooldown


@dataclass(frozen=True)
class Answer:
    """A recommendation that is safe to use; `problem` says why it is a hold instead of the policy's own."""

    recommendation: Recommendation
    memory: Memory
    problem: str | None = None


class Decider:
    """Calls the policy, within `timeout_s` if given.

    A policy that overruns cannot be stopped, only ignored: it keeps its thread, later cycles hold until it
    returns, and what it returns then is thrown away, memory included.
    """

    def __init__(self, policy: Policy, timeout_s: float | None = None) -> None:
        if timeout_s is not None and not timeout_s > 0:
            raise ValueError(f"timeout_s must be above 0, got {timeout_s}")
        self._policy = policy
        self._asks_while_cooling = decides_during_cooldown(policy)
        self._timeout_s = timeout_s
        self._overdue: threading.Thread | None = None

    def bound(self, most: int | None) -> None:
        """Tell a policy that leaves it open how many instances an operator may have."""
        self._policy = bounded(self._policy, most)

    def ask(self, observation: Observation, memory: Memory) -> Answer:
        """Within a cooldown only a policy that wants to see its windows is asked."""
        cost = observation.action_cost
        if cost is not None and cost.cooling_s > 0 and not self._asks_while_cooling:
            left = f"cooldown: {cost.cooling_s:g} of {cost.cooldown_s:g} s left, the policy is not asked"
            return Answer(Recommendation.hold(left), memory)
        try:
            if self._timeout_s is None:
                recommendation, learned = self._policy.decide(observation, memory)
            else:
                recommendation, learned = self._ask_in_time(observation, memory, self._timeout_s)
        except Exception as error:
            return refused(f"policy failed: {type(error).__name__}: {error}", memory)
        if not isinstance(recommendation, Recommendation):
            return refused(f"policy returned {recommendation!r} instead of a recommendation", memory)
        if not isinstance(learned, Mapping):
            return refused(f"policy returned {learned!r} instead of its memory", memory)
        strangers = sorted(
            (recommendation.parallelism.keys() | recommendation.sizes.keys()) - observation.operators.keys()
        )
        if strangers:
            return refused(f"policy named unknown operators: {', '.join(strangers)}", memory)
        return Answer(recommendation, learned)

    def _ask_in_time(self, observation: Observation, memory: Memory, timeout_s: float) -> tuple[Recommendation, Memory]:
        if self._overdue is not None and self._overdue.is_alive():
            raise TimeoutError("still busy with an earlier observation")
        answers: queue.SimpleQueue[tuple[Recommendation, Memory] | Exception] = queue.SimpleQueue()

        def work() -> None:
            try:
                answers.put(self._policy.decide(observation, memory))
            except Exception as error:
                answers.put(error)

        worker = threading.Thread(target=work, name="sluice-policy", daemon=True)
        worker.start()
        try:
            answer = answers.get(timeout=timeout_s)
        except queue.Empty:
            self._overdue = worker
            raise TimeoutError(f"no recommendation within {timeout_s:g} s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def refused(problem: str, memory: Memory) -> Answer:
    """A hold in place of what the policy gave."""
    problem = " ".join(problem.split())
    return Answer(Recommendation.hold(f"hold: {problem}"), memory, problem)
