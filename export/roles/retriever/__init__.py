"""Neural Path Hunter's entity retriever: its PyTorch model (``model.py``) and its three graphs (``graphs.py``).

``run.py`` runs either with the runtime's code, so that measurements of a model hold for its bundle too.
"""

from .graphs import build_retriever_graphs
from .model import EntityRetriever, RetrieverConfig
from .run import record, retriever_of

__all__ = ["EntityRetriever", "RetrieverConfig", "build_retriever_graphs", "record", "retriever_of"]
