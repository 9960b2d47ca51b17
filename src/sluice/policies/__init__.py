"""One file per policy, named like it, and nothing else; `sluice.protocol` has the protocol and the registry."""
