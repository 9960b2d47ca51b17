"""A planner that knows the load and the capacities: what the policies' cost is measured against."""

from sluice.experiments.clairvoyant.demand import Demand, demand
from sluice.experiments.clairvoyant.planner import ClairvoyantPlan, plan
from sluice.experiments.clairvoyant.schedule import Schedule

__all__ = ["ClairvoyantPlan", "Demand", "Schedule", "demand", "plan"]
