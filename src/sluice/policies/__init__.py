"""One file per policy, named like it, and nothing else; `sluice.policy` has the protocol and the registry."""
