"""A planner that knows the load and the capacities: what the policies' cost is measured against."""

from sluice.lab.clairvoyant.demand import Demand, demand
from sluice.lab.clairvoyant.planner import ClairvoyantPlan, plan
from sluice.lab.clairvoyant.schedule import Schedule

__all__ = ["ClairvoyantPlan", "Demand", "Schedule", "demand", "plan"]
