"""A live page over journals: what the job does, why it last scaled, and controls for who has the token."""
