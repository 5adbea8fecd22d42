"""Files: tables of edges and nodes, npz files, packed files and safe writing.

    files      paths, and files that appear complete or not at all
    archives   how much a packed file may unpack to
    npz        arrays and matrices in npz files
    array_file arrays with a JSON header in safetensors: model files and checkpoints
    columns    columns of ids and weights, edge tables
    arrow      CSV, TSV and Parquet files as Arrow tables
    tables     read_edges, read_nodes, read_columns, write_embedding

Only `columns`, `arrow` and `tables` need pyarrow.
"""
