"""Neural Path Hunter: finds the names that a knowledge graph does not support, and replaces them with entities it does.

Source: Dziri et al. 2021. ``mentions`` turns the critic's tokens into names, ``context`` selects the triples about a
dialogue, ``swaps`` finds exchanged names, ``repair`` chooses among the entities that the retriever returns, ``wording``
puts a name into a sentence, and ``steps`` joins them as generators of model calls. ``pipeline`` runs those for
``Critic`` and ``Refiner``.
"""
