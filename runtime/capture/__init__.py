"""Graphs that a GPU runs at fixed padded shapes, each captured once and then replayed; never run on a GPU so far."""
