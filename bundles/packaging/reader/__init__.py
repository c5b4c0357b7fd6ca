"""The bundle ``reader`` of Groundwire, which finds it by its entry point in ``groundwire.bundles``."""
