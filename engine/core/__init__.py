"""What scores requests: plans, procedures and their one driver. Packages above the engine build on ``Core``."""
