"""Correction of a response by what its knowledge says: proposals, drafts, and the check of the drafts."""
