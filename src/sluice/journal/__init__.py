"""The record of a run: typed, versioned, append-only."""
