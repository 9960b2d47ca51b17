"""Nexmark: auctions, bids and persons of an online market (thesis 5.4.2, figures 5.1 to 5.6)."""
