"""Files: tables of edges and nodes, embeddings, npz files, packed files and safe writing.

    files      paths, and files and folders that appear complete or not at all
    archives   how much a packed file may unpack to
    npz        arrays and matrices in npz and npy files
    array_file arrays with a JSON header in safetensors: model files and checkpoints
    columns    columns of ids and weights, lists of edges
    text_table     text files of columns, by their first lines: text_options, text_streams (bytes), text_columns, cells
    edge_files     read_edges: files of edges; edge_text: what their first line may be
    edge_columns   which column is what; edge_table: the edges in a table; edge_times; edge_reading: what was read
    faults         everything that is wrong with edges or nodes, in one error; memory, files that are too large
    graph_files    graphs with their nodes: graphml, gml, node_link, matrix_market; graph_columns: attributes
    lookup     ids and the rows that have them, pairs of ids; near, ids that look like an unknown one
    vectors    columns of lists of numbers
    parquet    Parquet files and tables, by blocks of rows
    features   the columns of a table as one matrix
    arrow      text and Parquet files as Arrow tables
    spreads    columns of numbers: which need one scale, which say nothing
    embedding_file     EmbeddingWriter, write_embedding; embedding_formats has a function per format
    folders    Lance and Zarr
    tables     read_nodes, read_columns, read_embedding; node_table: columns of any type

`files`, `archives`, `npz` and `array_file` do without pyarrow; `columns` and `vectors` import it when a table is read.
"""
