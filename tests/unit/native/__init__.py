"""Tests of groundwire.runtime._native."""
