"""Training recipes for the models of the embedded bundles, which are not published.

Every recipe is a command, ``python -m groundwire.recipes RECIPE --data DIR --out DIR``: seeded, resumable from its last
checkpoint, and evaluated on its development set when it ends. The result is an ordinary Hugging Face checkpoint
directory, which ``groundwire export`` turns into a bundle role.

The rooms, from high to low: ``cli``; the recipes ``compact``, ``conv_fever``, ``generator``, ``nph`` and ``spans``,
which do not import each other; ``synthesis``, which makes training examples from other data; and ``common``.
"""
