"""A stateful job on a cluster of this machine under a load that steps up and down, for `attach`."""
