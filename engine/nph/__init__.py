"""Neural Path Hunter: find the names that a knowledge graph does not support, and put those it does in their place.

Source: Dziri et al. 2021. ``mentions`` turns the critic's tokens into names, ``context`` gathers what the graph says
about a dialogue, ``repair`` decides between the entities that the retriever brings, ``wording`` puts a name into a
sentence, and ``steps`` is the whole as generators of model calls; ``Engine.critique`` and ``Engine.refine`` run them.
"""
