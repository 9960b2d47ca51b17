"""A planner that knows the load and the capacities: what the policies' cost is measured against."""

from sluice.lab.clairvoyant.demand import Demand, demand
from sluice.lab.clairvoyant.planner import ClairvoyantPlan, plan
from sluice.lab.clairvoyant.policy import ClairvoyantPolicy

__all__ = ["ClairvoyantPlan", "ClairvoyantPolicy", "Demand", "demand", "plan"]
