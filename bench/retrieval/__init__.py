"""Measures the quality and speed of `mcpzip.search` on any folder of tools, queries and relevance judgements.

    python -m bench.retrieval FOLDER                    quality by kind of query, calibration, speed, memory
    python -m bench.retrieval.constants FOLDER          the effect of each constant of the ranking
    python -m bench.retrieval.constants FOLDER --search 400     cross-validated search for better values

The data is not part of this project; `dataset` describes the files of a folder.
"""
