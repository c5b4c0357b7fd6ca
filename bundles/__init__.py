"""Bundles that ship with Groundwire: one directory each."""
