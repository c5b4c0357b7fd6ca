"""Recipes of the models in ``bundles/compact``, one per role."""
