"""The scheduler under random load and faults, in virtual time on one thread: every run replays from its seed."""
