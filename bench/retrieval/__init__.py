"""How well `mcpzip.search` finds tools, and how fast, on any folder of tools, queries and judgements.

    python -m bench.retrieval FOLDER                    quality by kind of query, calibration, speed, memory
    python -m bench.retrieval.constants FOLDER          what each constant of the ranking is worth
    python -m bench.retrieval.constants FOLDER --search 400     cross-validated search for better ones

The data is not part of this project; `dataset` says what a folder holds.
"""
