"""Files: tables of edges and nodes, embeddings, npz files, packed files and safe writing.

    files      paths, and files and folders that appear complete or not at all
    archives   how much a packed file may unpack to
    npz        arrays and matrices in npz and npy files
    array_file arrays with a JSON header in safetensors: model files and checkpoints
    columns    columns of ids and weights, edge tables
    vectors    columns of lists of numbers
    parquet    Parquet files and tables, by blocks of rows
    features   the columns of a table as one matrix
    arrow      CSV, TSV and Parquet files as Arrow tables
    embedding_file     EmbeddingWriter, write_embedding; embedding_formats has a function per format
    folders    Lance and Zarr
    tables     read_edges, read_nodes, read_columns, read_embedding

`files`, `archives`, `npz` and `array_file` do without pyarrow; `columns` and `vectors` import it when a table is read.
"""
