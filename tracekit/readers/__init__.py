"""Files to tables, one module (or package) per format. `dispatch` chooses the reader.

Nothing is imported here: who only looks for files or for cached tables needs no reader.
"""
