"""The loop around a policy: guards, journal, memory."""
