"""The corpus and the recipe of the Conv-FEVER detector."""
