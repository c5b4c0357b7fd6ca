"""Neural Path Hunter's entity retriever: its PyTorch model (``model.py``) and its three graphs (``graphs.py``).

``run.py`` lets the runtime's code run either, so what is measured of a model is what its bundle does.
"""

from .graphs import graphs
from .model import EntityRetriever, RetrieverConfig
from .run import record, retriever_of

__all__ = ["EntityRetriever", "RetrieverConfig", "graphs", "record", "retriever_of"]
