"""A small real Kubernetes on this machine, whose nodes run executor pods as processes."""
