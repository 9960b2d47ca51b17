"""A stateful job on a standalone cluster under a load that steps up and down, for `attach`."""
