"""The reader: one MPNet that reads (knowledge, whole answer) in one pass and labels sentences, tokens and the whole."""
